// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/statusstore/statusstore/internal/httpapi"
)

// checkListen looks at the address for readers. Anybody who can connect can read,
// so an address beyond this machine must have been asked for.
func checkListen(c Config) error {
	if c.Listen == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("%w: --listen: %w", ErrConfig, err)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("%w: --listen %s: %w", ErrConfig, c.Listen, err)
	}
	if !c.ListenRemote && !isLoopback(host) {
		return fmt.Errorf("%w: --listen %s is not loopback, and there is no authentication; use 127.0.0.1, or allow it with --listen-remote", ErrConfig, c.Listen)
	}
	return nil
}

// listenTCP opens the listener for readers, at an address that was checked; nil if
// none is asked for.
func listenTCP(ctx context.Context, c Config) (net.Listener, error) {
	if c.Listen == "" {
		return nil, nil
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen: %w; choose another address with --listen", err)
	}
	// A name may have resolved to something else than when it was looked at.
	if tcp, ok := l.Addr().(*net.TCPAddr); !c.ListenRemote && (!ok || !tcp.IP.IsLoopback()) {
		l.Close()
		return nil, fmt.Errorf("%w: --listen %s is not loopback but %v", ErrConfig, c.Listen, l.Addr())
	}
	return l, nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// localNames lets only requests through that were made to a loopback address: a
// web page that makes its own name resolve to one gets nothing.
func localNames(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if isLoopback(trimBrackets(host)) {
			next.ServeHTTP(w, r)
			return
		}
		forbid(w, fmt.Sprintf("the host %q is not this machine", r.Host))
	})
}

// unprivileged keeps from whoever can connect what readers of the socket don't get
// either.
func unprivileged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if httpapi.Privileged(r.URL.Path) {
			forbid(w, r.URL.Path+" is not for reading over TCP; use the agent's socket")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// forbid answers in the shape of all errors.
func forbid(w http.ResponseWriter, why string) {
	status := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New(why)).Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, err := json.Marshal(status)
	if err != nil {
		body = nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write(body) // the client is gone
}

func trimBrackets(host string) string {
	if len(host) > 1 && host[0] == '[' && host[len(host)-1] == ']' {
		return host[1 : len(host)-1]
	}
	return host
}
