// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// leftmost is the first column of the chart, to the right of the names, that has the
// colour of a name in the style; -1 if none has.
func (b *browser) leftmost(colour string) float64 {
	return eval[float64](b, fmt.Sprintf(`(() => {
		const hex = getComputedStyle(document.documentElement).getPropertyValue("--%s").trim();
		const want = [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
		const c = document.getElementById("chart"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		let left = -1;
		for (let i = 0; i < d.length; i += 4) if (d[i] === want[0] && d[i+1] === want[1] && d[i+2] === want[2]) {
			const x = (i / 4) %% c.width;
			if (left < 0 || x < left) left = x;
		}
		return left / devicePixelRatio;
	})()`, colour))
}

// TestPage_Window: of a part of the journal the page shows the pods that were there,
// from its beginning on, with what happened in it.
func TestPage_Window(t *testing.T) {
	b := visit(t, incident(t), "--since", "2026-01-31T02:44:30", "--until", "2026-01-31T02:47")
	b.drawn()
	if got := b.text("node"); !strings.HasSuffix(got, "2026-01-31T02:44:30.000Z to 2026-01-31T02:47:00.000Z") {
		t.Errorf("node: got %q", got)
	}
	if got := b.text("shown"); got != "4 of 4 pods" { // not the one that comes later
		t.Errorf("got %q", got)
	}
	for _, colour := range []string{"failed", "succeeded", "pending", "agent", "restart"} {
		if n := b.pixels(colour); n != 0 {
			t.Errorf("%d pixels of the colour %s, of what happened at another time", n, colour)
		}
	}
	// The axis has a margin of a hundredth, in which nothing is drawn.
	names := eval[float64](b, `Math.min(260, Math.max(120, document.getElementById("scroll").clientWidth * 0.28))`)
	width := eval[float64](b, `document.getElementById("scroll").clientWidth`)
	begin := names + (width-names)*0.01/1.02
	if left := b.leftmost("ready"); left < begin-1 || left > begin+1 {
		t.Errorf("bars begin at %g, want %g", left, begin)
	}
	b.press(kb.ArrowDown, kb.ArrowDown) // cache-0, db-0
	b.wantDetail("default/db-0", "0 events", "nothing happened to it in this time: running, ready throughout")
	b.press(kb.ArrowRight, kb.End, kb.Home) // there is no event to go to
	b.wantDetail("default/db-0")
	b.press(kb.ArrowUp, kb.Home)
	b.wantDetail("default/cache-0", "stopped being Ready after")
	b.quiet()
}

// TestPage_WindowGap: a pause of the agent that is longer than the page is on it
// without the start that ended it.
func TestPage_WindowGap(t *testing.T) {
	b := visit(t, incident(t), "--since", "2026-01-31T03:04", "--until", "2026-01-31T03:04:30")
	b.drawn()
	if got := b.text("shown"); got != "4 of 4 pods" {
		t.Errorf("got %q", got)
	}
	if n := b.pixels("restart") + b.pixels("agent"); n != 0 {
		t.Errorf("%d pixels of a start that is later", n)
	}
	below := `(() => { // what is beside the name, and in the middle, below the rows
		const c = document.getElementById("chart"), d = c.getContext("2d"), y = c.height - 20;
		return [5, c.width - 200].map(x => d.getImageData(x, y, 1, 1).data.join());
	})()`
	if colours := eval[[]string](b, below); colours[0] == colours[1] {
		t.Errorf("the pause is not to be seen: %q", colours)
	}
	b.press(kb.ArrowDown)
	b.wantDetail("default/cache-0", "not acknowledged since 2026-01-31T03:04:00.000Z or before")
	b.quiet()
}
