// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

// heldStore is a store whose watches wait for their turn as long as a test wants.
type heldStore struct {
	*store
	turns *turns
}

func newHeldStore(t *testing.T) *heldStore {
	t.Helper()
	s := newStore(t)
	a := newAPI(Options{Manager: s.manager, Node: "node-1"})
	server := httptest.NewServer(a.handler())
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	client := server.Client()
	return &heldStore{&store{t: t, manager: s.manager, client: &http.Client{Transport: toServer{client.Transport, server.Listener.Addr().String()}}}, a.turns}
}

// toServer sends all requests to one address.
type toServer struct {
	http.RoundTripper
	address string
}

func (s toServer) RoundTrip(r *http.Request) (*http.Response, error) {
	r.URL.Host = s.address
	return s.RoundTripper.RoundTrip(r)
}

func (s *heldStore) hold()    { s.turns.queue <- struct{}{} }
func (s *heldStore) release() { <-s.turns.queue }

// TestWatch_Merges: of what a pod went through while a watch waited for its turn,
// it shows the newest status, and the pod's beginning and end.
func TestWatch_Merges(t *testing.T) {
	s := newHeldStore(t)
	s.mustSet(newPod("web-0", "uid-a", message("0")))
	w := s.watch("")
	w.want("ADDED web-0 uid-a 0")
	s.hold()
	for i := range 5 {
		s.mustSet(newPod("web-0", "uid-a", message(fmt.Sprint("a", i))))
		s.mustSet(newPod("web-1", "uid-b", message(fmt.Sprint("b", i))))
	}
	s.release()
	w.want("ADDED web-1 uid-b b0", "MODIFIED web-0 uid-a a4", "MODIFIED web-1 uid-b b4")
	s.hold()
	s.mustSet(newPod("web-0", "uid-a", message("last")))
	if err := s.manager.Remove(t.Context(), "uid-a", journal.ReasonDeleted); err != nil {
		t.Fatal(err)
	}
	s.mustSet(newPod("web-0", "uid-c", message("c1")))
	s.mustSet(newPod("web-0", "uid-c", message("c2")))
	s.release()
	w.want("MODIFIED web-0 uid-a last", "DELETED web-0 uid-a last", "ADDED web-0 uid-c c1", "MODIFIED web-0 uid-c c2")
}

// TestWatch_MergesToTheSame: who follows a watch knows in the end what a list shows,
// whatever was merged, and never hears of a change to a pod that he doesn't know.
func TestWatch_MergesToTheSame(t *testing.T) {
	for _, query := range []string{"", "&fieldSelector=status.phase%3DRunning", "&labelSelector=app%3Dweb-1"} {
		t.Run(query, func(t *testing.T) {
			s := newHeldStore(t)
			s.mustSet(newPod("web-0", "uid-0"))
			w := s.watch(query)
			random := rand.New(rand.NewPCG(1, 2))
			uids := map[string]types.UID{"web-0": "uid-0"}
			for i := range 100 {
				if i%10 == 0 {
					s.hold()
				}
				name := fmt.Sprint("web-", random.IntN(4))
				switch n := random.IntN(10); {
				case n == 0 && uids[name] != "":
					if err := s.manager.Remove(t.Context(), uids[name], journal.ReasonDeleted); err != nil {
						t.Fatal(err)
					}
					delete(uids, name)
				case n == 1 || uids[name] == "":
					uids[name] = types.UID(fmt.Sprint("uid-", i))
					fallthrough
				default:
					of := v1.PodRunning
					if random.IntN(4) == 0 {
						of = v1.PodPending
					}
					s.mustSet(newPod(name, uids[name], phase(of), message(strconv.Itoa(i))))
				}
				if i%10 == 9 {
					s.release()
				}
			}
			s.mustSet(newPod("web-1", "uid-end", message("the end")))

			known := map[string]string{}
			version := 0
			for known["web-1"] != "uid-end the end" {
				kind, raw := w.raw()
				var pod v1.Pod
				if err := json.Unmarshal(raw, &pod); err != nil {
					t.Fatal(err)
				}
				rv, err := strconv.Atoi(pod.ResourceVersion)
				// A pod that comes into view because a newer one is gone is an old one.
				if err != nil || rv < version && kind != "ADDED" {
					t.Fatalf("%s at version %s after %d", kind, pod.ResourceVersion, version)
				}
				version = max(version, rv)
				if _, ok := known[pod.Name]; ok != (kind != "ADDED") {
					t.Fatalf("%s of %s, known: %v", kind, pod.Name, ok)
				}
				if known[pod.Name] = fmt.Sprintf("%s %s", pod.UID, pod.Status.Message); kind == "DELETED" {
					delete(known, pod.Name)
				}
			}
			var list v1.PodList
			s.do(http.MethodGet, "/api/v1/pods?"+query, "").into(t, http.StatusOK, &list)
			want := map[string]string{}
			for _, pod := range list.Items {
				want[pod.Name] = fmt.Sprintf("%s %s", pod.UID, pod.Status.Message)
			}
			if diff := cmp.Diff(want, known); diff != "" {
				t.Errorf("(-list +watch):\n%s", diff)
			}
		})
	}
}
