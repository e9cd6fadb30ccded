// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusstore/statusstore/internal/cli/socket"
)

func newProxy(s streams) *cobra.Command {
	var conn connection
	var port uint16
	cmd := &cobra.Command{
		Use:   "proxy [--port N]",
		Short: "Let kubectl read from the agent while the cluster is away",
		Long: `Serve the readable part of the agent's socket on a loopback address, which is
printed, until interrupted. Anybody on this machine can read there; nothing can
be written.`,
		Example: `  statusstore proxy --port 8001 &
  kubectl --server http://127.0.0.1:8001 get pods -A -w`,
		Args: wantArgs(cobra.NoArgs, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client := conn.client()
			defer client.Close()
			return runProxy(cmd.Context(), s, client, port)
		},
	}
	conn.addFlags(cmd)
	cmd.Flags().Uint16Var(&port, "port", 0, "`port` to listen on; 0 takes a free one")
	return cmd
}

func runProxy(ctx context.Context, s streams, client *socket.Client, port uint16) error {
	// A proxy to nowhere would only hide the mistake.
	conn, err := client.Dial(ctx)
	if err != nil {
		return err
	}
	if err := conn.Close(); err != nil {
		return fmt.Errorf("connect to %s: %w", client.Path(), err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	logger := newLogger(s.err, "text", "info")
	server := &http.Server{
		Handler:           newProxyHandler(client, logger),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
		// Watches end with the command, not with their clients.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(listener) }()
	if _, err = fmt.Fprintf(s.out, "http://%s\n", listener.Addr()); err == nil {
		select {
		case err = <-stopped:
			return fmt.Errorf("proxy: %w", err)
		case <-ctx.Done():
		}
	}
	err = errors.Join(err, server.Close())
	<-stopped
	return err
}

// proxied are the paths that can be read through the proxy, with all below them.
// The snapshot is not among them: it has the whole history of all pods.
var proxied = []string{
	"/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz", "/metrics",
	"/statusstore/v1/status", "/statusstore/v1/pods", "/statusstore/v1/events",
}

func newProxyHandler(client *socket.Client, logger *slog.Logger) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "statusstore", "statusstore"
		},
		Transport:     client.Transport(),
		FlushInterval: -1, // watches
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				logger.Warn("request fails", "path", r.URL.Path, "err", err)
			}
			refuse(w, http.StatusBadGateway, metav1.StatusReasonServiceUnavailable, oneLine(err))
		},
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		// A web page that points its own name at 127.0.0.1 must not read pods.
		case !isLoopback(r.Host):
			refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "only requests to a loopback address are served")
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "the proxy is for reading only; write on the agent's socket")
		case !isProxied(r.URL.Path):
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the proxy doesn't serve this path")
		default:
			proxy.ServeHTTP(w, r)
		}
	})
}

func isProxied(path string) bool {
	return slices.ContainsFunc(proxied, func(prefix string) bool {
		rest, ok := strings.CutPrefix(path, prefix)
		return ok && (rest == "" || rest[0] == '/') && !strings.Contains(rest, "..")
	})
}

func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// refuse answers with a metav1.Status.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// An error means that the client has gone.
	_ = json.NewEncoder(w).Encode(&metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}
