// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// screenshot is the picture of the documentation. STATUSSTORE_SCREENSHOT=1 takes
// it anew.
const screenshot = "../../docs/timeline.png"

// patience is "never" for a busy machine.
const patience = time.Minute

func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("STATUSSTORE_CHROMIUM"), "chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	t.Skip("no Chromium here: install the package chromium, or name the program in STATUSSTORE_CHROMIUM")
	return ""
}

// browser is one page that is open, and what it complained of and asked for.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex // guards the rest
	complaints []string
	requests   []string
}

// visit opens the page that journal-dump makes of a journal.
func visit(t *testing.T, journal string, args ...string) *browser {
	t.Helper()
	program := chromium(t)
	page := filepath.Join(t.TempDir(), "timeline.html")
	dumped(t, append([]string{"timeline", "--out", page, journal}, args...)...)
	if info, err := os.Stat(page); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("page: %v, %v", info, err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.WindowSize(1100, 460),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("blink-settings", "preferredColorScheme=1"), chromedp.WSURLReadTimeout(patience))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, patience)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, b.hear)
	b.run(network.Enable(), log.Enable(), chromedp.EmulateViewport(1100, 460), chromedp.Navigate("file://"+page), chromedp.WaitReady("#chart"))
	return b
}

func (b *browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		if !strings.HasPrefix(e.Entry.Text, "Canvas2D: Multiple readback") { // the test reads pixels back, not the page
			b.complaints = append(b.complaints, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

func (b *browser) run(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// eval returns the value of an expression.
func eval[T any](b *browser, expression string) (value T) {
	b.t.Helper()
	b.run(chromedp.Evaluate(expression, &value))
	return value
}

func (b *browser) text(id string) string {
	return eval[string](b, fmt.Sprintf("document.getElementById(%q).textContent", id))
}

// press sends keys and waits until the page has drawn.
func (b *browser) press(keys ...string) {
	b.t.Helper()
	for _, k := range keys {
		b.run(chromedp.KeyEvent(k))
	}
	b.drawn()
}

// drawn waits for the frame after the next.
func (b *browser) drawn() {
	b.t.Helper()
	b.run(chromedp.Evaluate(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`, nil,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
}

// pixels counts those of the chart that have the colour of a name in the style.
func (b *browser) pixels(colour string) int {
	return eval[int](b, fmt.Sprintf(`(() => {
		const hex = getComputedStyle(document.documentElement).getPropertyValue("--%s").trim();
		const want = [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
		const c = document.getElementById("chart"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		let n = 0;
		for (let i = 0; i < d.length; i += 4) if (d[i] === want[0] && d[i+1] === want[1] && d[i+2] === want[2]) n++;
		return n;
	})()`, colour))
}

// quiet fails if the page complained, or asked for anything but itself.
func (b *browser) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) > 0 {
		b.t.Errorf("the page complains: %q", b.complaints)
	}
	for _, url := range b.requests {
		if !strings.HasPrefix(url, "file://") || !strings.HasSuffix(url, "/timeline.html") {
			b.t.Errorf("the page asked for %s", url)
		}
	}
}

func (b *browser) wantDetail(parts ...string) {
	b.t.Helper()
	got := b.text("detail")
	for _, want := range parts {
		if !strings.Contains(got, want) {
			b.t.Errorf("the event shown lacks %q: %q", want, got)
		}
	}
}

func TestPage_Shows(t *testing.T) {
	b := visit(t, incident(t))
	b.drawn()
	if got := b.text("shown"); got != "5 of 5 pods" {
		t.Errorf("got %q", got)
	}
	if got := b.text("node"); !strings.Contains(got, "on node-1, 2026-01-31T02:40:00.000Z to 2026-01-31T03:1") {
		t.Errorf("node: got %q", got)
	}
	for _, colour := range []string{"ready", "unready", "pending", "failed", "succeeded", "unsynced", "restart", "agent"} {
		if n := b.pixels(colour); n < 20 {
			t.Errorf("%d pixels of the colour %s", n, colour)
		}
	}
	b.quiet()
}

func TestPage_Keyboard(t *testing.T) {
	b := visit(t, incident(t))
	b.press(kb.ArrowDown, kb.ArrowDown, kb.ArrowDown, kb.ArrowDown) // by name: the hostile one, cache-0, db-0, job-7
	b.press(kb.ArrowDown, kb.Home)
	b.wantDetail("default/web-0", "uid uid-web-0, 7 events", "not acknowledged since", "phase is Pending")
	b.press(kb.ArrowRight)
	b.wantDetail("phase went from Pending to Running", "became Ready after", "conditions[Ready].status", "− False", "+ True")
	b.press(kb.End)
	b.wantDetail("phase went from Running to Failed (node is full)", "phase− Running+ Failed")
	b.press(kb.ArrowLeft, kb.ArrowLeft)
	b.wantDetail("container app restarted (restart 2)")

	before := b.pixels("unready")
	b.press("+", "+", "+")
	if after := b.pixels("unready"); after <= before {
		t.Errorf("zoomed in on an unready pod: %d pixels of it after %d", after, before)
	}
	b.press("0")
	b.press("/")
	b.run(chromedp.KeyEvent("BACKUP is"))
	b.drawn()
	if got := b.text("shown"); got != "1 of 5 pods" {
		t.Errorf("search for %q: got %q", eval[string](b, `document.getElementById("search").value`), got)
	}
	if n := b.pixels("failed"); n != 0 {
		t.Errorf("%d pixels of the failed pod, which is not among the found", n)
	}
	b.press(kb.Enter)
	b.wantDetail("default/db-0")
	b.press(kb.Escape)
	if got := b.text("shown"); got != "5 of 5 pods" || b.text("detail") != "" {
		t.Errorf("after Escape: got %q, %q", got, b.text("detail"))
	}
	eval[any](b, `document.getElementById("troubled").click()`)
	b.drawn()
	if got := b.text("shown"); !strings.HasSuffix(got, " of 5 pods") || got == "5 of 5 pods" {
		t.Errorf("only troubled: got %q", got)
	}
	b.quiet()
}

// TestPage_Click: a click on a mark shows the nearest event of that row.
func TestPage_Click(t *testing.T) {
	b := visit(t, incident(t))
	box := eval[[]float64](b, `(r => [r.left, r.top, r.width])(document.getElementById("chart").getBoundingClientRect())`)
	webRow := box[1] + 26 + 4*18 + 9
	b.run(chromedp.MouseClickXY(box[0]+box[2]-3, webRow))
	b.drawn()
	b.wantDetail("default/web-0", "phase went from Running to Failed", "phase− Running+ Failed")
	b.run(chromedp.MouseClickXY(box[0]+20, webRow)) // its name
	b.wantDetail("default/web-0", "was first seen")
	b.quiet()
	picture(t, b)
}

// picture keeps a screenshot for the documentation, or looks at the one there is.
func picture(t *testing.T, b *browser) {
	b.press(kb.End)
	var shot []byte
	b.run(chromedp.CaptureScreenshot(&shot))
	if os.Getenv("STATUSSTORE_SCREENSHOT") != "" {
		if err := os.WriteFile(screenshot, shot, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(screenshot)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"taken": shot, "kept": kept} {
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := img.Bounds().Size(); got != image.Pt(1100, 460) || len(data) > 200<<10 {
			t.Errorf("%s: got %v, %d bytes", name, got, len(data))
		}
	}
}

// TestPage_HostileText: names and messages are text, whatever they say, and even
// a script that got into the page would not run.
func TestPage_HostileText(t *testing.T) {
	b := visit(t, incident(t))
	b.press(kb.ArrowDown, kb.Home)
	b.wantDetail(`<script>document.title="owned"</script>`, `<img src=x onerror=`)
	b.quiet()
	if got := eval[string](b, "document.title"); got != "journal-dump timeline" {
		t.Errorf("title: got %q: text from a pod was run", got)
	}
	if got := eval[int](b, `document.querySelectorAll("img, iframe, object, script[src], link").length`); got != 0 {
		t.Errorf("%d elements that load something", got)
	}
	if got := eval[int](b, `document.scripts.length`); got != 2 {
		t.Errorf("got %d scripts, want the data and the page's own", got)
	}
	eval[bool](b, `(() => { const s = document.createElement("script"); s.textContent = "document.title='owned'"; document.body.append(s);
		const d = document.createElement("div"); d.innerHTML = "<img src=x onerror=\"document.title='owned'\">"; document.body.append(d); return true; })()`)
	b.drawn()
	if got := eval[string](b, "document.title"); got != "journal-dump timeline" {
		t.Errorf("title: got %q: the policy let a script run", got)
	}
}

// TestPage_Crowd: 500 pods with 50,000 events are drawn, searched and walked.
func TestPage_Crowd(t *testing.T) {
	b := visit(t, crowd(t, 500, 50_000))
	b.drawn()
	if got := b.text("shown"); got != "500 of 500 pods" {
		t.Errorf("got %q", got)
	}
	var took float64
	b.run(chromedp.Evaluate(`(async () => {
		const frame = () => new Promise(done => requestAnimationFrame(done));
		const began = performance.now();
		for (let i = 0; i < 30; i++) { document.getElementById(i % 2 ? "out" : "in").click(); document.getElementById("scroll").scrollTop = i * 250; await frame(); }
		return (performance.now() - began) / 30;
	})()`, &took, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	t.Logf("a frame takes %.1f ms", took)
	b.press(kb.ArrowDown, kb.End)
	b.wantDetail("default/web-0", ", 100 events")
	b.press(kb.PageDown)
	b.wantDetail("default/web-116")
	b.press("/")
	b.run(chromedp.KeyEvent("web-499"))
	b.drawn()
	if got := b.text("shown"); got != "1 of 500 pods" {
		t.Errorf("search: got %q", got)
	}
	b.quiet()
}
