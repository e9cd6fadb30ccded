// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// runProgram runs a program to its end.
func runProgram(t *testing.T, env []string, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// accountKubeconfig lets an agent be a service account, by a token in a file of
// its own as a pod has it.
func accountKubeconfig(t *testing.T, namespace, account string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(3600))}}
	answer, err := plane.client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(answer.Status.Token), 0o600); err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{
		Server: plane.config.Host, CertificateAuthority: plane.config.CAFile, CertificateAuthorityData: plane.config.CAData,
	}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{TokenFile: token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	path := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// duty makes an agent need all that its role allows.
type duty func(t *testing.T, a *agent, namespace string)

func recordDuty(*testing.T, *agent, string) {}

// manageDuty: a status to patch, a pod to delete, and one that has to be looked
// for because no LIST shows it.
func manageDuty(t *testing.T, a *agent, ns string) {
	t.Helper()
	patched := createPod(t, newPod(ns, "patched", a.node))
	a.client.mustSet(t, withStatus(patched, running(patched, "")))
	deleted := requestDeletion(t, createPod(t, newPod(ns, "deleted", a.node)))
	// As the server has it already: the DELETE has to wait for no PATCH.
	status := succeeded(deleted)
	deleted.Status = status
	if _, err := plane.client.CoreV1().Pods(ns).UpdateStatus(t.Context(), deleted, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.client.mustSet(t, withStatus(deleted, status))
	a.client.finish(t, deleted.UID)
	missing := newPod(ns, "missing", a.node)
	missing.UID = "00000000-0000-0000-0000-000000000001"
	a.client.mustSet(t, withStatus(missing, running(missing, "")))
}

// refused returns the agent's requests that the server forbade.
func refused(t *testing.T, since mark) requests {
	t.Helper()
	return agentRequests(t, since).where(func(r request) bool { return r.ResponseStatus.Code == 403 })
}

// answered counts the agent's requests by verb that were allowed, be it that the
// object was not found.
func answered(t *testing.T, since mark) map[string]int {
	t.Helper()
	return agentRequests(t, since).where(func(r request) bool {
		return r.ResponseStatus.Code < 300 || r.ResponseStatus.Code == 404
	}).verbs()
}

// TestRBAC proves the roles of deploy/kubernetes: with all their verbs the agent is
// refused nothing and uses each; without any one of them it is refused.
func TestRBAC(t *testing.T) {
	tests := []struct {
		mode  string
		args  []string
		duty  duty
		verbs []string // what the duty takes
	}{
		{"record", []string{"--mode", "record"}, recordDuty, []string{"list", "watch"}},
		{"manage", nil, manageDuty, []string{"get", "list", "watch", "delete", "patch"}},
	}
	for _, tt := range tests {
		t.Run(tt.mode, func(t *testing.T) {
			var role *rbacv1.ClusterRole
			for _, o := range applyManifests(t, "namespace.yaml", tt.mode+"-rbac.yaml") {
				if r, ok := o.Object.(*rbacv1.ClusterRole); ok {
					role = r
				}
			}
			kubeconfig := accountKubeconfig(t, "statusstore", "statusstore-"+tt.mode)
			begin := func(t *testing.T) (mark, *agent, string) {
				ns := createNamespace(t, "rbac-"+tt.mode)
				a := newAgent(t, "node-"+ns)
				a.kubeconfig, a.args = kubeconfig, tt.args
				createPod(t, newPod(ns, "there", a.node))
				since := markRequests(t)
				a.start(t)
				return since, a, ns
			}

			var verbs []string
			for _, rule := range role.Rules {
				verbs = append(verbs, rule.Verbs...)
			}
			if !slices.Equal(verbs, tt.verbs) {
				t.Errorf("the role allows %v, want %v", verbs, tt.verbs)
			}
			t.Run("whole", func(t *testing.T) {
				setRules(t, role.Name, role.Rules)
				since, a, ns := begin(t)
				tt.duty(t, a, ns)
				eventually(t, time.Minute, func() error {
					got := answered(t, since)
					for _, verb := range tt.verbs {
						if got[verb] == 0 {
							return fmt.Errorf("got %v, want each of %v", got, tt.verbs)
						}
					}
					return nil
				})
				if found := refused(t, since); len(found) > 0 {
					t.Errorf("refused: %v", found)
				}
			})
			for i, rule := range role.Rules {
				for _, verb := range rule.Verbs {
					t.Run("without "+verb+" "+rule.Resources[0], func(t *testing.T) {
						setRules(t, role.Name, without(role.Rules, i, verb))
						since, a, ns := begin(t)
						tt.duty(t, a, ns)
						eventually(t, time.Minute, func() error {
							if len(refused(t, since).verb(verb)) == 0 {
								return fmt.Errorf("not refused; the agent sent %v", agentRequests(t, since).verbs())
							}
							return nil
						})
						// The agent says so to its operator, too.
						eventually(t, 30*time.Second, func() error { return a.complains(t) })
						a.kill(t)
					})
				}
			}
		})
	}
}

// complains wants the agent's own status to tell that something is forbidden.
func (a *agent) complains(t *testing.T) error {
	t.Helper()
	var s struct {
		LastSyncError string `json:"lastSyncError"`
	}
	if _, err := a.client.do("GET", "/statusstore/v1/status", nil, &s); err != nil {
		return err
	}
	said := []string{s.LastSyncError}
	for _, r := range a.client.records(t) {
		said = append(said, r.LastError)
	}
	if !strings.Contains(strings.ToLower(strings.Join(said, "\n")), "forbidden") {
		return fmt.Errorf("neither the last error nor a pod tells that something is forbidden: %q", said)
	}
	return nil
}

// may asks the server what the service account of a role's name is allowed.
func may(t *testing.T, account, verb, resource string) bool {
	t.Helper()
	resource, sub, _ := strings.Cut(resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:statusstore:" + account,
		Groups:             []string{"system:serviceaccounts", "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: resource, Subresource: sub},
	}}
	answer, err := plane.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Allowed
}

// without returns the rules without one verb of one of them.
func without(rules []rbacv1.PolicyRule, at int, verb string) []rbacv1.PolicyRule {
	var rest []rbacv1.PolicyRule
	for i, rule := range rules {
		rule = *rule.DeepCopy()
		if i == at {
			rule.Verbs = slices.DeleteFunc(rule.Verbs, func(v string) bool { return v == verb })
		}
		if len(rule.Verbs) > 0 {
			rest = append(rest, rule)
		}
	}
	return rest
}

// setRules changes a role and waits until the authorizer has seen that, which it
// learns by a watch.
func setRules(t *testing.T, name string, rules []rbacv1.PolicyRule) {
	t.Helper()
	role, err := plane.client.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role.Rules = rules
	if _, err := plane.client.RbacV1().ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() error {
		for _, resource := range []string{"pods", "pods/status"} {
			for _, verb := range []string{"get", "list", "watch", "delete", "patch"} {
				want := slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
					return slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb)
				})
				if got := may(t, name, verb, resource); got != want {
					return fmt.Errorf("%s %s: got %v, want %v", verb, resource, got, want)
				}
			}
		}
		return nil
	})
}
