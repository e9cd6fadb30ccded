// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/internal/httpapi"
)

// load is how much there is to bear.
type load struct{ clients, puts, watchers int }

// loadOf is little by default; STATUSSTORE_LOAD_PUTS gives each of 64 clients so many statuses to set, with
// 1,000 watchers.
func loadOf(t *testing.T) load {
	t.Helper()
	text := os.Getenv("STATUSSTORE_LOAD_PUTS")
	if text == "" {
		return load{clients: 16, puts: 40, watchers: 50}
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return load{clients: 64, puts: n, watchers: 1000}
}

// TestLoad has many clients set statuses while many watch, one reader has stopped
// reading, and others send nonsense: good clients see no error, every watcher that
// reads sees the end, nobody waits for a watcher, and memory stays bounded. The
// agent is a process of its own, whose memory can be told.
func TestLoad(t *testing.T) {
	l := loadOf(t)
	p := launch(t, childConfig{Dir: shortDir(t)})
	p.client.Timeout = slack * 30 * time.Second
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var background, watching, setting sync.WaitGroup
	before := peakMemory(p.cmd.Process.Pid)

	stuck := p.openStuck(t)
	defer stuck.Close()
	var watched, lines, behind atomic.Int64
	ready := make(chan struct{}, l.watchers)
	for range l.watchers {
		watching.Go(func() {
			began := sync.OnceFunc(func() { ready <- struct{}{} })
			defer began()
			err := p.watchForEnd(ctx, began, &lines)
			for ; errors.Is(err, errBehind); err = p.watchForEnd(ctx, began, &lines) { // as an informer does
				behind.Add(1)
			}
			if err != nil {
				t.Errorf("watcher: %v", err)
				return
			}
			watched.Add(1)
		})
	}
	watching.Go(func() {
		began := sync.OnceFunc(func() { ready <- struct{}{} })
		defer began()
		if err := p.watchInOrder(ctx, began); err != nil {
			t.Errorf("a watch out of order: %v", err)
		}
	})
	for range l.watchers + 1 { // before the first status, or it would begin with a list
		<-ready
	}
	var malformed, odd atomic.Int64
	for range nonsenseSenders { // 100 requests a second
		background.Go(func() {
			tick := time.NewTicker(nonsenseSenders * 10 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				n := malformed.Add(1)
				if code := p.sendNonsense(int(n)); (code < 400 || code >= 500) && ctx.Err() == nil {
					odd.Add(1)
				}
			}
		})
	}

	begin := time.Now()
	took := make([][]time.Duration, l.clients)
	for client := range l.clients {
		setting.Go(func() {
			transport := p.client.Transport.(*http.Transport).Clone()
			defer transport.CloseIdleConnections()
			own := &http.Client{Transport: transport, Timeout: p.client.Timeout}
			for i := range l.puts {
				sent := time.Now()
				if err := put(own, newPod(client, message(strconv.Itoa(i)))); err != nil {
					t.Errorf("client %d: %v", client, err)
					return
				}
				took[client] = append(took[client], time.Since(sent))
			}
		})
	}
	setting.Wait()
	whole := time.Since(begin)
	p.set(newPod(l.clients, message(theEnd)))
	finished := make(chan struct{})
	go func() { watching.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-time.After(slack * 60 * time.Second):
		t.Errorf("%d of %d watchers have seen the end", watched.Load(), l.watchers)
	}
	cancel()
	<-finished
	background.Wait()

	all := slices.Concat(took...)
	slices.Sort(all)
	if len(all) != l.clients*l.puts || t.Failed() {
		t.Fatalf("%d of %d statuses were set", len(all), l.clients*l.puts)
	}
	peak := peakMemory(p.cmd.Process.Pid)
	t.Logf("%d clients, %d statuses in %.1fs (%.0f/s; each p50 %v, p99 %v, at most %v), %d watchers got %d lines and began anew %d times, %d malformed requests; memory before %d MiB, at most %d MiB",
		l.clients, len(all), whole.Seconds(), float64(len(all))/whole.Seconds(), all[len(all)/2], all[len(all)*99/100], all[len(all)-1],
		watched.Load(), lines.Load(), behind.Load(), malformed.Load(), before>>20, peak>>20)
	if odd.Load() > 0 || malformed.Load() == 0 {
		t.Errorf("%d of %d malformed requests did not get a 4xx", odd.Load(), malformed.Load())
	}
	if got := p.status().HeadSequence; int(got) < len(all) {
		t.Errorf("got head %d, want at least %d", got, len(all))
	}
	bound := before + 64<<20 + int64(l.watchers+l.clients)*(192<<10)
	if raceDetector() {
		bound *= 8
	}
	if peak > bound {
		t.Errorf("memory reached %d MiB, want at most %d MiB", peak>>20, bound>>20)
	}
}

// nonsenseSenders share the sending of malformed requests.
const nonsenseSenders = 8

// theEnd is the message after which nothing comes.
const theEnd = "the end"

// openStuck begins a watch and never reads it.
func (r *running) openStuck(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return conn
}

// errBehind: the watch fell behind the history that is kept.
var errBehind = errors.New("the watch is too far behind")

// watchForEnd reads a watch until it shows the last status, and counts the lines.
func (r *running) watchForEnd(ctx context.Context, began func(), count *atomic.Int64) error {
	return r.readWatch(ctx, began, func(line []byte) (bool, error) {
		count.Add(1)
		switch {
		case bytes.Contains(line, []byte(`"message":"`+theEnd+`"`)):
			return true, nil
		case bytes.Contains(line, []byte(`"type":"ERROR"`)):
			return false, fmt.Errorf("%w: %.300s", errBehind, line)
		}
		return false, nil
	})
}

// watchInOrder looks at what a watch says: statuses of a pod may be left out, but
// nothing goes back, and each pod begins with ADDED.
func (r *running) watchInOrder(ctx context.Context, began func()) error {
	seen := make(map[string]int) // the number in each pod's message
	head := 0
	return r.readWatch(ctx, began, func(line []byte) (bool, error) {
		var e struct {
			Type   string
			Object v1.Pod
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return false, err
		}
		if e.Object.Status.Message == theEnd {
			return true, nil
		}
		version, err1 := strconv.Atoi(e.Object.ResourceVersion)
		n, err2 := strconv.Atoi(e.Object.Status.Message)
		last, known := seen[e.Object.Name]
		if err := errors.Join(err1, err2); err != nil || version <= head || known != (e.Type == "MODIFIED") || !known != (e.Type == "ADDED") || known && n <= last {
			return false, fmt.Errorf("after version %d, %s known: %v, with %d: %w: %.300s", head, e.Object.Name, known, last, err, line)
		}
		head, seen[e.Object.Name] = version, n
		return false, nil
	})
}

// readWatch reads a watch of all pods, once it has begun, line by line until look
// has seen enough.
func (r *running) readWatch(ctx context.Context, began func(), look func(line []byte) (enough bool, err error)) error {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", r.socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err = io.WriteString(conn, "GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	began() // the body is not closed, which would read to its end
	lines := bufio.NewReaderSize(resp.Body, 16<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return err
		}
		if enough, err := look(line); err != nil || enough {
			return err
		}
	}
}

func put(client *http.Client, pod *v1.Pod) error {
	body, err := json.Marshal(pod)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPut, "http://statusstore"+httpapi.PodStatusPath(pod.Namespace, pod.Name), bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", resp.Status, text)
	}
	return err
}

// nonsense are requests that no client should send.
var nonsense = []string{
	"PUT /api/v1/namespaces/default/pods/web-0/status HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nConnection: close\r\n\r\n{",
	"PUT /api/v1/namespaces/default/pods/web-0/status HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\nConnection: close\r\n\r\n",
	"POST /statusstore/v1/pods/x/readiness HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnull",
	"GET /api/v1/pods?limit=x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	"BREW /coffee HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	"\x00\x01\x02\r\n\r\n",
	"GET /api/v1/pods HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 80<<10) + "\r\n\r\n",
	"PUT /api/v1/namespaces/default/pods/web-0/status HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\nConnection: close\r\n\r\n" + strings.Repeat("[", 2000),
}

// sendNonsense returns the code of the answer.
func (r *running) sendNonsense(i int) int {
	conn, err := net.Dial("unix", r.socket)
	if err != nil {
		return 0
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(slack * 10 * time.Second)); err != nil {
		return 0
	}
	_, _ = io.WriteString(conn, nonsense[i%len(nonsense)]) // it may be cut off
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// peakMemory is the most that a process had in memory; 0 where nobody tells.
func peakMemory(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}
