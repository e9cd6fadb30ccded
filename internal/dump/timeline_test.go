// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/statusstore/statusstore/journal"
)

const hostileText = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>\u2028"

// pageOf writes the page of a journal and returns it.
func pageOf(t *testing.T, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "page.html")
	wantRun(t, run(append([]string{"timeline", "--out", out}, args...)...), exitOK)
	info, err := os.Stat(out)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("page: got %v, %v; want mode 0600", info, err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(filepath.Dir(out)); len(left) != 1 {
		t.Errorf("left beside the page: %v", left)
	}
	return string(b)
}

// parsePage returns the data of a page.
func parsePage(t *testing.T, page string) (got pageData) {
	t.Helper()
	data := regexp.MustCompile(`(?s)id="data">(.*?)</script>`).FindStringSubmatch(page)
	if data == nil {
		t.Fatalf("no data in the page: %.300s", page)
	}
	if err := json.Unmarshal([]byte(data[1]), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// TestPage_Safe: what pods say is in the data only, where nothing ends it, and the
// policy allows exactly the style and the script that are there.
func TestPage_Safe(t *testing.T) {
	path := build(t, func(w *writer) {
		s := running("app")
		s.Message, s.Reason = hostileText, hostileText
		s.ContainerStatuses[0].Name = hostileText
		w.set(hostileText, s)
		w.add(hostileText, journal.KindRemoved, journal.Reason(hostileText), nil)
	})
	page := pageOf(t, path)
	if n := strings.Count(page, "<script"); n != 2 {
		t.Errorf("%d scripts begin, want the data and the page's own", n)
	}
	if strings.Contains(page, "<img") || strings.Contains(page, "\u2028") || strings.Count(page, "</script>") != 2 || strings.Contains(page, "<!--") {
		t.Error("text of a pod is in the page as markup")
	}
	data := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`).FindStringSubmatch(page)
	var parsed pageData
	if data == nil || json.Unmarshal([]byte(data[1]), &parsed) != nil || !strings.Contains(strings.Join(parsed.Strings, "\n"), "<img src=x onerror=alert(1)>") {
		t.Errorf("the data is not what was said: %.300s", data)
	}
	policy := regexp.MustCompile(`content="(default-src 'none'; script-src [^;]*; style-src [^;]*;[^"]*)"`).FindStringSubmatch(page)
	if policy == nil || strings.Contains(policy[1], "unsafe") {
		t.Fatalf("policy: got %q", policy)
	}
	for _, element := range []string{"script", "style"} {
		text := regexp.MustCompile(`(?s)<` + element + `>(.*?)</` + element + `>`).FindStringSubmatch(page)
		sum := sha256.Sum256([]byte(text[1]))
		if want := element + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy[1], want) {
			t.Errorf("policy %q lacks %q", policy[1], want)
		}
	}
	for _, word := range []string{"http:", "https:", "//cdn", "@import", "url("} {
		if strings.Contains(page, word) {
			t.Errorf("the page has %q: it must need no network", word)
		}
	}
}

// TestPage_Data: what is drawn is what happened.
func TestPage_Data(t *testing.T) {
	got := parsePage(t, pageOf(t, night(t)))
	if got.Node != "node-1" || got.From != nightFall.UnixMilli() || len(got.Pods) != 3 || len(got.Epochs) != 2 || got.Epochs[1][0] != 2 || got.Epochs[1][3] != 1 ||
		got.Epochs[1][1]-got.Epochs[1][2] != 180_000 {
		t.Errorf("got node %q, %d pods, epochs %v", got.Node, len(got.Pods), got.Epochs)
	}
	web := got.Pods[2]
	if got.Strings[web.Name] != "default/web-0" || len(web.Events) != 4 || web.Unsynced != 1_221_000 {
		t.Errorf("got %q with %d events, unsynced since %d", got.Strings[web.Name], len(web.Events), web.Unsynced)
	}
	if oom := web.Events[3]; oom[4] != float64(flagRestart) || !strings.Contains(got.Strings[int(oom[7].(float64))], "OOMKilled") {
		t.Errorf("the restart: got %v", oom)
	}
}
