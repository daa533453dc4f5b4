package serve

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"caper/solve"
)

// In a real browser, at the width of a desk and of a phone, light and dark: a question comes
// to an answer, an error, nothing, or its limit, and each is said. CAPER_SCREENSHOTS names a
// folder for pictures of all of them.
func TestPage(t *testing.T) {
	s := shopService(t)
	s.Scorer = rewardModel(t, s.Bench)
	server := serving(t, s)
	impatient := shopService(t)
	impatient.Generators = []solve.Generator{stalled{}}
	impatient.Limits.Time = 300 * time.Millisecond
	late := serving(t, impatient)
	b := startBrowser(t)
	for _, look := range []struct {
		name   string
		width  int
		scheme string
	}{{"1280-light", 1280, "light"}, {"1280-dark", 1280, "dark"}, {"375-light", 375, "light"}, {"375-dark", 375, "dark"}} {
		b.window(t, look.width, 800, look.scheme)
		for _, c := range []struct{ name, at, question, says string }{
			{"answer", server.URL, askMakers, "Saab"},
			{"empty", server.URL, askNothing, "no rows"},
			{"error", server.URL, askBroken, "none of the queries can run"},
			{"timeout", server.URL, askForever, "limit"},
			{"odd", server.URL, askOdd, "9007199254740993"},
			{"nobody", server.URL, "Who wrote this?", "wrote nothing"},
			{"late", late.URL, askMakers, "time limit"},
		} {
			b.open(t, c.at, "document.readyState === 'complete' && document.getElementById('database').value === 'shop'")
			if c.name == "answer" {
				b.picture(t, "start-"+look.name)
			}
			b.evaluate(t, fmt.Sprintf("document.getElementById('question').value = %q; document.getElementById('ask').click()", c.question))
			b.wait(t, fmt.Sprintf("!document.getElementById('ask').disabled && document.body.innerText.toLowerCase().includes(%q)", strings.ToLower(c.says)))
			if wide := b.evaluate(t, "document.documentElement.scrollWidth").(float64); wide > float64(look.width) {
				t.Errorf("%s %s: the page is %v points wide", c.name, look.name, wide)
			}
			b.picture(t, c.name+"-"+look.name)
		}
	}
	if title := b.evaluate(t, "document.title"); strings.Contains(fmt.Sprint(title), "owned") {
		t.Error("a cell ran as a script")
	}
	for _, c := range b.complaints() {
		t.Error(c)
	}
}
