// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/statusstore/statusstore/manager"
	"github.com/statusstore/statusstore/podstatus"
)

// family is a metric as it was gathered.
type family struct {
	histogram bool
	labels    []string
	series    int
}

func gatherAll(t *testing.T, g prometheus.Gatherer) map[string]family {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]family)
	for _, f := range families {
		found := family{histogram: f.GetType().String() == "HISTOGRAM", series: len(f.GetMetric())}
		for _, l := range f.GetMetric()[0].GetLabel() {
			found.labels = append(found.labels, l.GetName())
		}
		byName[f.GetName()] = found
	}
	return byName
}

// busyMetrics are those of an agent that has done everything once.
func busyMetrics(t *testing.T) *prometheus.Registry {
	t.Helper()
	x := NewMetrics()
	s := newStore(t, func(_ *manager.Options, o *Options) { o.Metrics = x })
	s.mustSet(newPod("web-0", "uid-a"))
	hooks := x.Hooks()
	hooks.ContainerTerminated("uid-a", podstatus.Termination{Kind: "app", ExitCode: 1, Reason: "Error"})
	hooks.Rejected(nil)
	hooks.ResizeEnded("uid-a", "done", time.Second)
	x.Request("PATCH", "ok", time.Millisecond)
	x.Delivered("uid-a", time.Second)
	x.Circuit(true)
	x.RecordRetry()
	return x.registry
}

// TestMetrics_Lint holds the names against Prometheus' conventions.
func TestMetrics_Lint(t *testing.T) {
	families, err := busyMetrics(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// repository is where this module's files lie.
const repository = "../.."

// TestMetrics_Documented: docs/operations.md has one row for each metric, and none
// for others.
func TestMetrics_Documented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(statusstore_[a-z_]+)").FindAllSubmatch(text, -1) {
		documented[string(m[1])] = true
	}
	for name := range gatherAll(t, busyMetrics(t)) {
		if strings.HasPrefix(name, "statusstore_") && !documented[name] {
			t.Errorf("%s is not in docs/operations.md", name)
		}
		delete(documented, name)
	}
	delete(documented, "statusstore_resizes") // only while there is one
	for name := range documented {
		t.Errorf("docs/operations.md tells of %s, which does not exist", name)
	}
}

// TestMetrics_Bounded: whatever callers say, there are not more series than that.
func TestMetrics_Bounded(t *testing.T) {
	x := NewMetrics()
	for i := range 1000 {
		x.Hooks().ContainerTerminated(types.UID(fmt.Sprint(i)), podstatus.Termination{Kind: "app", ExitCode: int32(300 + i), Reason: fmt.Sprint("r", i)})
	}
	if got := gatherAll(t, x.registry)["statusstore_containers_terminated_total"].series; got != 1 {
		t.Errorf("got %d series, want 1", got)
	}
}

// query is an expression in a file of deploy/.
type query struct{ where, expr string }

func dashboardQueries(t *testing.T) []query {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repository, "deploy", "grafana", "statusstore.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		UID    string `json:"uid"`
		Panels []struct {
			ID      int    `json:"id"`
			Title   string `json:"title"`
			GridPos struct{ H, W, X, Y int }
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(data, &board); err != nil {
		t.Fatal(err)
	}
	var all []query
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q: id %d, place %+v", p.Title, p.ID, p.GridPos)
		}
		ids[p.ID] = true
		if len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			all = append(all, query{"panel " + p.Title, target.Expr})
		}
	}
	return all
}

func alertQueries(t *testing.T) []query {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repository, "deploy", "prometheus", "statusstore.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict(data, &rules); err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile(filepath.Join(repository, "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all []query
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Labels["severity"] == "" || r.Annotations["summary"] == "" {
				t.Errorf("alert %s has no severity or no summary", r.Alert)
			}
			if !strings.Contains(string(guide), "`"+r.Alert+"`") {
				t.Errorf("docs/troubleshooting.md does not say what to do about %s", r.Alert)
			}
			if r.For != "" {
				if _, err := time.ParseDuration(r.For); err != nil {
					t.Errorf("alert %s: %v", r.Alert, err)
				}
			}
			all = append(all, query{"alert " + r.Alert, r.Expr})
		}
	}
	return all
}

// foreign are labels that scraping or Prometheus itself adds.
var foreign = []string{"instance", "job", "le", "alertname"}

// check returns what is wrong with an expression: metrics that do not exist, and
// labels that none of its metrics has.
func (q query) check(families map[string]family) []string {
	var wrong []string
	labels := slices.Clone(foreign)
	found := regexp.MustCompile(`\b(?:statusstore|process|go)_[a-z_]+\b`).FindAllString(q.expr, -1)
	if len(found) == 0 {
		wrong = append(wrong, "no metric")
	}
	for _, name := range found {
		f, ok := families[name]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base, cut := strings.CutSuffix(name, suffix); cut && families[base].histogram {
				f, ok = families[base], true
			}
		}
		if !ok {
			wrong = append(wrong, name+" does not exist")
			continue
		}
		labels = append(labels, f.labels...)
	}
	used := regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`).FindAllStringSubmatch(q.expr, -1)
	for _, by := range regexp.MustCompile(`\b(?:by|on|without)\s*\(([a-z_, ]*)\)`).FindAllStringSubmatch(q.expr, -1) {
		for name := range strings.SplitSeq(by[1], ",") {
			used = append(used, []string{"", strings.TrimSpace(name)})
		}
	}
	for _, m := range used {
		if !slices.Contains(labels, m[1]) {
			wrong = append(wrong, "no metric has the label "+m[1])
		}
	}
	return wrong
}

// TestDeploy_Queries: dashboard and alerts ask for metrics and labels that exist.
func TestDeploy_Queries(t *testing.T) {
	families := gatherAll(t, busyMetrics(t))
	for _, q := range slices.Concat(dashboardQueries(t), alertQueries(t)) {
		for _, wrong := range q.check(families) {
			t.Errorf("%s: %s: %s", q.where, wrong, q.expr)
		}
	}
	for expr, want := range map[string]string{
		`statusstore_nope > 0`:                           "statusstore_nope does not exist",
		`sum by (nope) (statusstore_pods)`:               "no metric has the label nope",
		`statusstore_pods{nope="1"}`:                     "no metric has the label nope",
		`statusstore_pods_bucket`:                        "statusstore_pods_bucket does not exist",
		`rate(statusstore_sync_latency_seconds_sum[5m])`: "",
	} {
		if got := strings.Join(query{"", expr}.check(families), "; "); got != want {
			t.Errorf("%s: got %q, want %q", expr, got, want)
		}
	}
}
