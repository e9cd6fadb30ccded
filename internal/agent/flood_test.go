// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statusstore/statusstore/internal/httpapi"
)

// C62: what is too large costs no memory and keeps nobody waiting.
func TestC62_Memory(t *testing.T) {
	t.Parallel()
	p := launch(t, childConfig{Dir: shortDir(t)})
	for i := range 20 { // what a request costs anyway
		p.set(newPod(i))
	}
	deep := strings.Repeat(`{"a":`, 1_000_000)
	path := httpapi.PodStatusPath("default", "web-0")
	head, before := p.status().HeadSequence, peakMemory(p.cmd.Process.Pid)
	tests := []struct {
		name, start string
		size        int64 // of what follows, in pieces
		piece       string
	}{
		{"2 GiB in chunks", "PUT " + path + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", 2 << 30,
			"10000\r\n" + strings.Repeat(" ", 64<<10) + "\r\n"},
		{"header of 100 MiB", "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ", 100 << 20, strings.Repeat("a", 64<<10)},
		{"1 000 000 levels", fmt.Sprintf("PUT %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, len(deep)), int64(len(deep)), deep},
		{"1 000 000 levels within the limit", "PUT " + path + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n", 1_000_000,
			strings.Repeat("[", 1_000_000)},
	}
	stop := make(chan struct{})
	var senders, others sync.WaitGroup
	served := 0
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if code, _, body, err := p.exchange(http.MethodGet, path, nil); err != nil || code != http.StatusOK {
				t.Errorf("another client: %d %v: %s", code, err, body)
				return
			}
			served++
		}
	})
	for _, tt := range tests {
		senders.Go(func() {
			for range 3 {
				answer, whole, err := p.flood(tt.start, tt.size, tt.piece)
				if err != nil {
					t.Errorf("%s: %v", tt.name, err)
					return
				}
				refused := strings.HasPrefix(answer, "HTTP/1.1 413 ") || strings.HasPrefix(answer, "HTTP/1.1 431 ") || strings.HasPrefix(answer, "HTTP/1.1 400 ")
				if !refused && (answer != "" || whole) {
					t.Errorf("%s: got %.100q, all of it taken: %v", tt.name, answer, whole)
				}
			}
		})
	}
	senders.Wait()
	close(stop)
	others.Wait()
	if served == 0 {
		t.Error("another client was not served meanwhile")
	}
	if got := p.status().HeadSequence; got != head {
		t.Errorf("head %d, want %d", got, head)
	}
	peak, bound := peakMemory(p.cmd.Process.Pid), before+32<<20
	if raceDetector() {
		bound += 7 * 32 << 20
	}
	t.Logf("memory before %d MiB, at most %d MiB; another client was served %d times", before>>20, peak>>20, served)
	if peak > bound {
		t.Errorf("memory went from %d MiB to %d MiB", before>>20, peak>>20)
	}
	p.kill()
}

// flood sends a request that has size bytes behind its start, until the agent takes
// no more. It returns the beginning of the answer, "" if the connection was closed
// without one, and whether all of it was taken.
func (r *running) flood(start string, size int64, piece string) (answer string, whole bool, err error) {
	conn, err := net.Dial("unix", r.socket)
	if err != nil {
		return "", false, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(slack * 30 * time.Second)); err != nil {
		return "", false, err
	}
	_, err = io.WriteString(conn, start)
	for sent := int64(0); err == nil && sent < size; sent += int64(len(piece)) {
		_, err = io.WriteString(conn, piece)
	}
	whole = err == nil
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "", whole, err
	}
	b := make([]byte, 200)
	n, err := conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "", whole, err
	}
	return string(b[:n]), whole, nil
}
