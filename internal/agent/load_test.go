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
	"runtime"
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
// reads sees the end, and memory stays bounded.
func TestLoad(t *testing.T) {
	l := loadOf(t)
	r := start(t, configFor(shortDir(t)))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var background, watching, setting sync.WaitGroup
	before := memoryInUse()
	peak := &atomic.Int64{}

	stuck := r.openStuck(t)
	defer stuck.Close()
	var watched, behind atomic.Int64
	ready := make(chan struct{}, l.watchers)
	for range l.watchers {
		watching.Go(func() {
			if err := r.watchForEnd(ctx, ready, &behind); err != nil {
				t.Errorf("watcher: %v", err)
				return
			}
			watched.Add(1)
		})
	}
	for range l.watchers {
		<-ready
	}
	var malformed, odd atomic.Int64
	background.Go(func() {
		for tick := time.NewTicker(10 * time.Millisecond); ; malformed.Add(1) {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
				if code := r.sendNonsense(int(malformed.Load())); code < 400 || code >= 500 {
					odd.Add(1)
				}
			}
		}
	})
	background.Go(func() {
		for ctx.Err() == nil {
			peak.Store(max(peak.Load(), memoryInUse()))
			time.Sleep(20 * time.Millisecond)
		}
	})

	begin := time.Now()
	var failed atomic.Int64
	for client := range l.clients {
		setting.Go(func() {
			transport := r.client.Transport.(*http.Transport).Clone()
			defer transport.CloseIdleConnections()
			own := &http.Client{Transport: transport, Timeout: slack * 30 * time.Second}
			for i := range l.puts {
				if err := put(own, newPod(client, message(strconv.Itoa(i)))); err != nil {
					t.Errorf("client %d: %v", client, err)
					failed.Add(1)
					return
				}
			}
		})
	}
	setting.Wait()
	took := time.Since(begin)
	r.set(newPod(l.clients, message("the end")))
	finished := make(chan struct{})
	go func() { watching.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-time.After(slack * 60 * time.Second):
		t.Errorf("%d of %d watchers have seen the end", watched.Load(), l.watchers)
	}
	cancel()
	background.Wait()

	sets := l.clients * l.puts
	t.Logf("%d clients, %d statuses in %.1fs (%.0f/s), %d watchers (%d times too far behind), %d malformed requests; errors: %d; memory in use before %d MiB, at most %d MiB",
		l.clients, sets, took.Seconds(), float64(sets)/took.Seconds(), watched.Load(), behind.Load(), malformed.Load(), failed.Load(), before>>20, peak.Load()>>20)
	if odd.Load() > 0 || malformed.Load() == 0 {
		t.Errorf("%d of %d malformed requests did not get a 4xx", odd.Load(), malformed.Load())
	}
	if got := r.status().HeadSequence; int(got) < sets {
		t.Errorf("got head %d, want at least %d", got, sets)
	}
	// Clients and watchers live in this process, too: they are most of it.
	bound := before + int64(64<<20) + int64(l.watchers+l.clients)*(512<<10)
	if peak.Load() > bound {
		t.Errorf("memory in use reached %d MiB, want at most %d MiB", peak.Load()>>20, bound>>20)
	}
}

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

// watchForEnd reads watches until one shows the last status; it begins anew, as an
// informer does, when it fell too far behind. Ready hears of the first one.
func (r *running) watchForEnd(ctx context.Context, ready chan<- struct{}, behind *atomic.Int64) error {
	err := r.watchOnce(ctx, ready)
	for errors.Is(err, errBehind) {
		behind.Add(1)
		err = r.watchOnce(ctx, make(chan struct{}, 1))
	}
	return err
}

func (r *running) watchOnce(ctx context.Context, ready chan<- struct{}) error {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", r.socket)
	if err != nil {
		ready <- struct{}{}
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_, err = io.WriteString(conn, "GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n")
	lines := bufio.NewReaderSize(conn, 16<<10)
	if err == nil {
		_, err = lines.ReadString('\n') // the answer has begun
	}
	ready <- struct{}{}
	for err == nil {
		var line []byte
		if line, err = lines.ReadSlice('\n'); bytes.Contains(line, []byte(`"message":"the end"`)) {
			return nil
		}
		if bytes.Contains(line, []byte(`"type":"ERROR"`)) && bytes.Contains(line, []byte(`"code":410`)) {
			return errBehind
		}
		if err == bufio.ErrBufferFull {
			err = nil
		}
	}
	return err
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

// memoryInUse is that of this process, heap and stacks.
func memoryInUse() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
