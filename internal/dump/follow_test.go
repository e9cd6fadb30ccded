// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/statusstore/statusstore/journal"
)

// stream serves lines as an agent does whose journal ends with the last of the first
// ones. The later ones come one by one, and then nothing until the client leaves.
func stream(t *testing.T, first, later []string) (socket string) {
	t.Helper()
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/statusstore/v1/status" {
			fmt.Fprint(w, `{"node":"node-1","epoch":2,"headSequence":10}`)
			return
		}
		from := 1
		fmt.Sscan(r.URL.Query().Get("from"), &from)
		w.Header().Set("Statusstore-Sequence", fmt.Sprint(len(first)))
		w.WriteHeader(http.StatusOK)
		for _, line := range first[min(from-1, len(first)):] {
			if line != "" {
				fmt.Fprintln(w, line)
			}
		}
		w.(http.Flusher).Flush()
		for _, line := range later {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-r.Context().Done():
				return
			}
			fmt.Fprintln(w, line)
			w.(http.Flusher).Flush()
		}
		select {
		case <-r.Context().Done():
		case <-time.After(time.Minute):
			t.Error("the client did not leave")
		}
	}))
}

// TestFollow_Ends: what is followed ends with the last event that is wanted, without
// waiting for one that is not, and when its time has come.
func TestFollow_Ends(t *testing.T) {
	lines := run("-o", "ndjson", tale(t)).lines() // 1 to 10, of a moment ago; 9 begins epoch 2
	line := func(seq int, at time.Time) string {
		return fmt.Sprintf(`{"sequence":%d,"time":%q,"epoch":2,"kind":"set","reason":"set","namespace":"default","name":"web-0","uid":"uid-web-0","version":%[1]d}`, seq, at.Format(time.RFC3339Nano))
	}
	now := time.Now()
	soon := now.Add(700 * time.Millisecond).Format(time.RFC3339Nano)
	later := []string{line(11, now), line(12, now), line(13, now.Add(time.Hour)), line(14, now.Add(2*time.Hour))}
	hole := slices.Clone(lines)
	hole[4], hole[5] = "", `{"sequence":6,"error":"checksum does not match"}`
	tests := []struct {
		name  string
		first []string
		args  string
		want  []journal.Sequence
		code  int
		said  string
	}{
		{"at a sequence", lines, "--from 3 --to 5", []journal.Sequence{3, 4, 5}, exitOK, ""},
		{"at the head", lines, "--from 9 --to 10", []journal.Sequence{9, 10}, exitOK, ""},
		{"at the head, and nothing comes", lines, "--from 9 --to 10 --pod web-0", []journal.Sequence{10}, exitOK, ""},
		{"at one that comes", lines, "--from 10 --to 12", []journal.Sequence{10, 11, 12}, exitOK, ""},
		{"at one that is trimmed", hole, "--from 4 --to 5", []journal.Sequence{4}, exitOK, ""},
		{"at one that is damaged", hole, "--from 4 --to 6", []journal.Sequence{4}, exitFailed, "sequence 6: checksum does not match"},
		{"at a sequence as a point", lines, "--since 3 --until 4", []journal.Sequence{3, 4}, exitOK, ""},
		{"at the nearer end", lines, "--from 3 --until 4 --to 9", []journal.Sequence{3, 4}, exitOK, ""},
		{"with changes", lines, "-p --from 7 --to 8", []journal.Sequence{7, 8}, exitOK, ""},
		{"none of its pod", lines, "--pod web-1 --to 4", nil, exitOK, ""},
		{"a time gone by", lines, "--from 8 --until now", []journal.Sequence{8, 9, 10}, exitOK, ""},
		{"a time before all", lines, "--until 2001-01-01", nil, exitOK, ""},
		{"a time gone by, behind the head", lines, "--from 11 --until now", nil, exitOK, ""},
		{"a time that an event is after", lines, "--from 10 --until " + now.Add(time.Minute).Format(time.RFC3339Nano), []journal.Sequence{10, 11, 12}, exitOK, ""},
		{"a time that comes", lines, "--from 10 --until " + soon, []journal.Sequence{10, 11, 12}, exitOK, ""},
		{"trimmed history", hole, "--from 5 --to 7", []journal.Sequence{7}, exitFailed, "sequence 6"},
		{"trimmed history, of a time", append([]string{"", "", ""}, lines[3:]...), "--since 1h --to 5", []journal.Sequence{4, 5}, exitOK,
			"events 1 to 3 were trimmed by retention and are not in the journal; others after them may be, too"},
		{"trimmed history, of no range", append([]string{"", "", ""}, lines[3:]...), "--to 5", []journal.Sequence{4, 5}, exitOK, ""},
		{"trimmed history, of a sequence", append([]string{"", "", ""}, lines[3:]...), "--from 2 --to 5", []journal.Sequence{4, 5}, exitOK, "events 2 to 3 were trimmed by retention"},
		{"trimmed history, of a point", append([]string{"", "", ""}, lines[3:]...), "--since 2 --to 5", []journal.Sequence{4, 5}, exitOK, "events 2 to 3 were trimmed by retention"},
		{"trimmed history, of another time", append([]string{"", "", ""}, lines[3:]...), "--from 4 --to 5", []journal.Sequence{4, 5}, exitOK, ""},
		{"an epoch", lines, "--since epoch:2 --to 10", []journal.Sequence{9, 10}, exitOK, ""},
		{"an epoch that is not yet", lines, "--since epoch:3", nil, exitFailed, "there is no epoch 3 yet: the agent is in epoch 2"},
		{"the end of an epoch", lines, "--until epoch:2", nil, exitUsage, "--follow with --until epoch:2: an epoch ends with the agent"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			socket := stream(t, tt.first, later)
			switch { // none that would end it
			case strings.Contains(tt.args, soon):
				socket = stream(t, tt.first, later[:2])
			case strings.Contains(tt.name, "nothing comes"):
				socket = stream(t, tt.first, nil)
			}
			began := time.Now()
			got := run(append([]string{"--socket", socket, "--follow", "-o", "ndjson"}, strings.Fields(tt.args)...)...)
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %v to end", took)
			}
			if got.code != tt.code || tt.said == "" && got.err != "" || !strings.Contains(got.err, tt.said) {
				t.Errorf("exit code %d, stderr %q; want %d, %q", got.code, got.err, tt.code, tt.said)
			}
			if strings.Count(got.err, "trimmed") > 1 {
				t.Errorf("said more than once: %q", got.err)
			}
			if diff := cmp.Diff(tt.want, sequences(got.events(t))); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFollow_EndsBusy: a stream that is busy when the time comes is read to the last
// event of that time.
func TestFollow_EndsBusy(t *testing.T) {
	until := time.Now().Add(200 * time.Millisecond)
	socket := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Statusstore-Sequence", "1")
		for seq := 1; ; seq++ { // of before the time, and long after it
			fmt.Fprintf(w, "{\"sequence\":%d,\"time\":%q,\"kind\":\"set\"}\n", seq, until.Add(time.Duration(seq-30)*time.Millisecond).Format(time.RFC3339Nano))
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}))
	got := run("--socket", socket, "--follow", "-o", "ndjson", "--until", until.Format(time.RFC3339Nano))
	wantRun(t, got, exitOK)
	if n := len(got.events(t)); n != 30 {
		t.Errorf("got %d events, want 30", n)
	}
}
