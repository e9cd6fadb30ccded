// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

// tellTimeout bounds the wait for a supervisor whose queue is full.
const tellTimeout = time.Second

// supervisor is who started the agent and wants to hear from it: systemd, with
// Type=notify and WatchdogSec. The protocol is that of sd_notify(3): datagrams to
// the socket in $NOTIFY_SOCKET.
type supervisor struct {
	socket   string        // empty: nobody listens
	watchdog time.Duration // 0: no sign of life is wanted
}

func newSupervisor(getenv func(string) string) supervisor {
	s := supervisor{socket: getenv("NOTIFY_SOCKET")}
	pid := getenv("WATCHDOG_PID")
	if usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && usec > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		s.watchdog = time.Duration(usec) * time.Microsecond
	}
	return s
}

// tell sends one message, if somebody listens.
func (s supervisor) tell(ctx context.Context, message string) error {
	if s.socket == "" {
		return nil
	}
	// A leading @ is an abstract socket, to Go's net package as well.
	conn, err := new(net.Dialer).DialContext(ctx, "unixgram", s.socket)
	if err != nil {
		return fmt.Errorf("notify supervisor: %w", err)
	}
	defer conn.Close()
	// One who does not read would hold up the agent's end as well.
	if err := conn.SetWriteDeadline(time.Now().Add(tellTimeout)); err != nil {
		return fmt.Errorf("notify supervisor: %w", err)
	}
	if _, err := conn.Write([]byte(message)); err != nil {
		return fmt.Errorf("notify supervisor: %w", err)
	}
	return nil
}

// feed tells the watchdog, twice in its time, that the agent answers on its
// socket. One that doesn't is restarted, and loses nothing by it.
func (s supervisor) feed(ctx context.Context, socket string) {
	if s.socket == "" || s.watchdog == 0 {
		return
	}
	client := &http.Client{
		Timeout: s.watchdog / 2,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", socket)
			},
		},
	}
	ticker := time.NewTicker(s.watchdog / 2)
	defer ticker.Stop()
	for {
		// A failure is told by silence: the watchdog's time runs out.
		if alive(ctx, client) {
			_ = s.tell(ctx, "WATCHDOG=1")
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func alive(ctx context.Context, client *http.Client) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://statusstore/livez", nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // the code says it all
	return resp.StatusCode == http.StatusOK
}
