// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// plane is one control plane. Its exported fields are kept in DIR/state.json for
// the commands that follow start.
type plane struct {
	Bin           string   `json:"bin"`
	Port          int      `json:"port"`
	EtcdPort      int      `json:"etcdPort"`
	Token         string   `json:"token"`
	Authorization string   `json:"authorization"`
	ExtraArgs     []string `json:"extraArgs,omitempty"`
	Etcd          proc     `json:"etcd"`
	APIServer     proc     `json:"apiserver"`

	dir string
}

func (p *plane) path(name string) string { return filepath.Join(p.dir, name) }
func (p *plane) url() string             { return fmt.Sprintf("https://127.0.0.1:%d", p.Port) }
func (p *plane) etcdURL() string         { return fmt.Sprintf("http://127.0.0.1:%d", p.EtcdPort) }

func (p *plane) load() error {
	data, err := os.ReadFile(p.path("state.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, p); err != nil {
		return fmt.Errorf("%s: %w", p.path("state.json"), err)
	}
	return nil
}

func (p *plane) save() error {
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.path("state.json.part"), append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(p.path("state.json.part"), p.path("state.json"))
}

// start runs both programs on what the folder holds, or on nothing. When it
// fails, nothing is left running.
func (p *plane) start(f flags) error {
	if p.Etcd.running() || p.APIServer.running() {
		return fmt.Errorf("%s runs already, stop it first", p.dir)
	}
	if f.port != 0 {
		p.Port = f.port
	}
	if f.etcdPort != 0 {
		p.EtcdPort = f.etcdPort
	}
	p.Authorization, p.ExtraArgs = f.authorization, f.extra
	err := p.prepare()
	if err == nil {
		err = p.startEtcd(f.timeout)
	}
	if err == nil {
		err = p.up(f.timeout)
	}
	if err != nil {
		return errors.Join(err, p.stop(true))
	}
	return nil
}

// prepare finds the programs, ports, and secrets.
func (p *plane) prepare() (err error) {
	if p.Bin, _, err = plan(); err != nil {
		return err
	}
	if !built(p.Bin) {
		return errors.New("the programs are not built yet: run controlplane.sh build")
	}
	for _, port := range []*int{&p.Port, &p.EtcdPort} {
		if *port == 0 {
			if *port, err = freePort(); err != nil {
				return err
			}
		}
	}
	if p.Token == "" {
		p.Token = rand.Text()
	}
	tokens := fmt.Sprintf("%s,admin,admin,system:masters\n", p.Token)
	if err := os.WriteFile(p.path("tokens.csv"), []byte(tokens), 0o600); err != nil {
		return err
	}
	return writeServiceAccountKey(p.path("sa.key"))
}

func (p *plane) startEtcd(timeout time.Duration) (err error) {
	p.Etcd, err = spawn(p.path("etcd.log"), filepath.Join(p.Bin, "etcd"),
		"--data-dir="+p.path("etcd"),
		"--listen-client-urls="+p.etcdURL(),
		"--advertise-client-urls="+p.etcdURL(),
		"--listen-peer-urls=http://127.0.0.1:0",
		"--unsafe-no-fsync", // tests kill processes, not the machine
		"--log-level=warn",
	)
	if err := errors.Join(err, p.save()); err != nil {
		return err
	}
	return p.wait("etcd", p.Etcd, timeout, func() error {
		return get(http.DefaultClient, p.etcdURL()+"/health", "")
	})
}

// up starts the API server and waits until it serves.
func (p *plane) up(timeout time.Duration) (err error) {
	if !p.Etcd.running() {
		return fmt.Errorf("etcd of %s does not run, use start", p.dir)
	}
	if p.APIServer.running() {
		return fmt.Errorf("the API server of %s runs already", p.dir)
	}
	p.APIServer, err = spawn(p.path("kube-apiserver.log"), filepath.Join(p.Bin, "kube-apiserver"), append([]string{
		"--etcd-servers=" + p.etcdURL(),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none", // a loopback address may not become an endpoint
		fmt.Sprintf("--secure-port=%d", p.Port),
		"--cert-dir=" + p.path("certs"), // the server signs a certificate for itself here
		"--token-auth-file=" + p.path("tokens.csv"),
		"--authorization-mode=" + p.Authorization,
		"--disable-admission-plugins=ServiceAccount", // nobody makes the accounts
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + p.path("sa.key"),
		"--service-account-signing-key-file=" + p.path("sa.key"),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--shutdown-watch-termination-grace-period=2s", // else one open watch holds up SIGTERM
	}, p.ExtraArgs...)...)
	if err := errors.Join(err, p.save()); err != nil {
		return err
	}
	err = p.wait("kube-apiserver", p.APIServer, timeout, func() error {
		client, cert, err := p.client()
		if err != nil {
			return err
		}
		defer client.CloseIdleConnections()
		if err := get(client, p.url()+"/readyz", p.Token); err != nil {
			return err
		}
		// The server makes this namespace itself, a moment after it is ready.
		if err := get(client, p.url()+"/api/v1/namespaces/default", p.Token); err != nil {
			return err
		}
		return writeKubeconfig(p.path("kubeconfig"), p.url(), p.Token, cert)
	})
	if err == nil {
		fmt.Println(p.path("kubeconfig"))
	}
	return err
}

func (p *plane) down(kill bool) error { return p.APIServer.terminate(20*time.Second, kill) }

func (p *plane) stop(kill bool) error {
	return errors.Join(p.down(kill), p.Etcd.terminate(10*time.Second, kill))
}

// wait repeats the check until it passes, the process ends or the time is over.
func (p *plane) wait(name string, proc proc, timeout time.Duration, check func() error) error {
	var err error
	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if !proc.running() {
			return fmt.Errorf("%s ended:\n%s", name, tail(p.path(name+".log")))
		}
		if err = check(); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s not ready after %s: %w\n%s", name, timeout, err, tail(p.path(name+".log")))
}

// processView is one process as status shows it.
type processView struct {
	PID     int  `json:"pid"`
	Running bool `json:"running"`
	MB      int  `json:"memoryMB"`
	PeakMB  int  `json:"peakMemoryMB"`
}

func (p *plane) print() error {
	look := func(p proc) processView {
		v := processView{PID: p.PID, Running: p.running()}
		if v.Running {
			v.MB, v.PeakMB = p.memoryMB()
		}
		return v
	}
	client, _, notReady := p.client()
	if notReady == nil {
		notReady = get(client, p.url()+"/readyz", p.Token)
	}
	data, err := json.MarshalIndent(map[string]any{
		"ready":          notReady == nil,
		"url":            p.url(),
		"kubeconfig":     p.path("kubeconfig"),
		"etcd":           look(p.Etcd),
		"kube-apiserver": look(p.APIServer),
	}, "", "  ")
	if err != nil {
		return err
	}
	fmt.Println(string(data))
	if notReady != nil {
		return fmt.Errorf("not ready: %w", notReady)
	}
	return nil
}
