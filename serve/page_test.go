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
			b.open(t, c.at, ready)
			if c.name == "answer" {
				b.picture(t, "start-"+look.name)
			}
			b.evaluate(t, fmt.Sprintf("document.getElementById('question').value = %q; document.getElementById('ask').click()", c.question))
			b.wait(t, fmt.Sprintf("!document.getElementById('ask').disabled && (document.body?.innerText ?? '').toLowerCase().includes(%q)", strings.ToLower(c.says)))
			if wide := b.evaluate(t, "document.documentElement.scrollWidth").(float64); wide > float64(look.width) {
				t.Errorf("%s %s: the page is %v points wide", c.name, look.name, wide)
			}
			b.picture(t, c.name+"-"+look.name)
		}
	}
	takesQueriesOfOnesOwn(t, b, server.URL)
	canBeStopped(t, b)
	asksForTheToken(t, b)
	if title := b.evaluate(t, "document.title"); strings.Contains(fmt.Sprint(title), "owned") {
		t.Error("a cell ran as a script")
	}
	for _, c := range b.complaints() {
		t.Error(c)
	}
}

const ready = "document.readyState === 'complete' && document.getElementById('database')?.value === 'shop'"

// Two queries with an empty line between are two candidates.
func takesQueriesOfOnesOwn(t *testing.T, b *browser, url string) {
	b.open(t, url, ready)
	b.evaluate(t, `document.getElementById('question').value = 'how many?';
		document.getElementById('candidates').value = 'SELECT count(*) AS cars\nFROM car\n\n  SELECT count(*) FROM car WHERE price > 0';
		document.getElementById('ask').click()`)
	b.wait(t, "(document.body?.innerText ?? '').includes('2 candidates')")
	if got := b.evaluate(t, "document.querySelector('#answer td').innerText"); got != "5" {
		t.Errorf("%v cars", got)
	}
}

// Stop ends the wait, in the service too: there is a turn for the next one.
func canBeStopped(t *testing.T, b *browser) {
	s := shopService(t)
	s.Generators, s.Limits.Time = []solve.Generator{stalled{}}, time.Hour
	b.open(t, serving(t, s).URL, ready)
	for range s.Limits.Together + 1 {
		b.evaluate(t, "document.getElementById('question').value = 'a'; document.getElementById('ask').click()")
		b.wait(t, "!document.getElementById('stop').hidden")
		b.evaluate(t, "document.getElementById('stop').click()")
		b.wait(t, "document.getElementById('status').innerText === 'stopped'")
	}
	for end := time.Now().Add(20 * time.Second); len(s.turns) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a request that was stopped still has its turn")
		}
	}
}

func asksForTheToken(t *testing.T, b *browser) {
	s := shopService(t)
	s.Token = "secret"
	server := serving(t, s)
	b.open(t, server.URL, "(document.body?.innerText ?? '').includes('asks for its token')")
	b.picture(t, "token")
	b.evaluate(t, "document.getElementById('token').value = 'secret'; document.getElementById('token').dispatchEvent(new Event('change'))")
	b.wait(t, ready)
	if hidden := b.evaluate(t, "document.getElementById('problem').hidden"); hidden != true {
		t.Error("with the token it still complains")
	}
}
