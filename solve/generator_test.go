package solve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"caper/data"
	"caper/model/remote"
)

func prompter(d Databases) *Prompter {
	compact := func(q data.Question) (string, error) { return "maker(id)\nquestion: " + q.Question + "\n", nil }
	return &Prompter{Compact: compact, Databases: d, MaxValues: 8}
}

var asked = data.Question{ID: data.IndexID(0), DBID: "shop", Question: "Which cars of volvo did Ann Lee buy?"}

// The prompt names the values that the question mentions as the database spells them,
// the longest ones, and shows no demonstration of the split to be answered.
func TestPrompt(t *testing.T) {
	d := makeDatabase(t, 0, shop...)
	p := prompter(d)
	training := []data.Question{
		{DBID: "other", Question: "Which cars did Bob buy?", Gold: "SELECT 1"},
		{DBID: "other", Question: "Which boats are red?", Gold: "SELECT 2"},
		{DBID: "shop", Question: "Which cars of volvo did Cy buy?", Gold: "SELECT 3"},          // of the same database
		{DBID: "other", Question: "which CARS of volvo did  Ann Lee buy?", Gold: "SELECT 4"},   // the question itself
		{DBID: "other", Question: "Which cars of volvo are there to buy?", Gold: "SELECT  5 "}, // the gold query of one that is asked
	}
	hidden := []data.Question{asked, {DBID: "other", Question: "else", Gold: "select 5"}}
	var err error
	if p.Demonstrations, err = NewDemonstrations(training, hidden, 2); err != nil {
		t.Fatal(err)
	}
	text, err := p.Text(context.Background(), asked, DDL)
	if err != nil {
		t.Fatal(err)
	}
	for part, want := range map[string]bool{
		`CREATE TABLE "maker"`: true, `FOREIGN KEY ("maker_id") REFERENCES "maker"("id")`: true,
		`"maker"."name" has the value 'Volvo'`: true, `"sale"."buyer" has the value 'Ann Lee'`: true, "'Bo'": false,
		"SELECT 1": true, "SELECT 3": false, "SELECT 4": false, "SELECT  5": false, "SELECT 5": false,
		"question: " + asked.Question: true,
	} {
		if strings.Contains(text, part) != want {
			t.Errorf("%q in the prompt: %v\n%s", part, !want, text)
		}
	}
	if strings.Index(text, "SELECT 1") > strings.Index(text, "SELECT 2") && strings.Contains(text, "SELECT 2") {
		t.Error("the less similar demonstration comes first")
	}
	if _, err := NewDemonstrations(hidden, hidden, 2); err == nil {
		t.Error("demonstrations of the split itself")
	}
}

// A server that gives one answer a call is asked again, each time with another seed.
func TestServerGenerator(t *testing.T) {
	d := makeDatabase(t, 0, shop...)
	var seeds []uint64
	s, _ := stub(t, func(n int64, w http.ResponseWriter, r *http.Request) {
		var c remote.Call
		body, _ := io.ReadAll(r.Body)
		json.Unmarshal(body, &c)
		seeds = append(seeds, c.Seed)
		io.WriteString(w, answering(fmt.Sprintf("Here: ```sql\nSELECT %d FROM car\n```", n)))
	})
	g := &ServerGenerator{Draw: Draw{Name: "ge", Style: Compact, Count: 3, Temperature: 0.7, Seed: 5}, Server: s, Prompter: prompter(d)}
	got, err := Generate(context.Background(), pool(rollout("file", "SELECT 9")), []Generator{g})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, c := range got.Candidates {
		texts = append(texts, c.origin()+" "+c.SQL)
	}
	if want := []string{"file#0 SELECT 9", "ge/compact#0 SELECT 1 FROM car", "ge/compact#1 SELECT 2 FROM car", "ge/compact#2 SELECT 3 FROM car"}; !slices.Equal(texts, want) {
		t.Errorf("%q", texts)
	}
	slices.Sort(seeds)
	if len(slices.Compact(seeds)) != 3 || got.Cost.Calls != 3 || got.Cost.TokensIn != 21 {
		t.Errorf("seeds %v, %+v", seeds, got.Cost)
	}
	lines, err := got.Lines()
	if err != nil || string(lines[1].Extra["style"]) != `"compact"` {
		t.Errorf("%v, %v", lines, err)
	}

	dead, _ := stub(t, func(_ int64, w http.ResponseWriter, _ *http.Request) { http.Error(w, "oh", 500) })
	g.Server = dead
	if got, err = Generate(context.Background(), pool(), []Generator{g}); err != nil || len(got.Candidates) != 0 || got.Cost.Failed != 1 {
		t.Errorf("a dead server: %+v, %v", got, err)
	}
}

// The corrector hears the engine's own words, and what it says is taken only if it runs.
func TestCorrector(t *testing.T) {
	d := makeDatabase(t, 0, shop...)
	var heard string
	reply := ""
	s, _ := stub(t, func(_ int64, w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		heard = string(body)
		io.WriteString(w, answering(reply))
	})
	r := repairer(d)
	r.Corrector = &Corrector{Server: s, Prompter: prompter(d), Style: Compact, Samples: 2}
	for _, c := range []struct{ query, says, reply, want string }{
		{"SELECT brand FROM maker", "no such column: brand", "```sql\nSELECT name FROM maker\n```", "SELECT name FROM maker"},
		{"SELECT brand FROM maker", "no such column: brand", "SELECT brand2 FROM maker", "SELECT brand FROM maker"},
		{"SELECT brand FROM maker", "no such column: brand", "I cannot.", "SELECT brand FROM maker"},
		{"SELECT model FROM car WHERE model = 'golf'", "no row has model = 'golf'; values are amazon, panda, tipo", "SELECT model FROM car WHERE price = 5", "SELECT model FROM car WHERE price = 5"},
		{"SELECT model FROM car WHERE model = 'golf'", "returns no rows", "SELECT model FROM car WHERE price = 6", "SELECT model FROM car WHERE model = 'golf'"},
		{"SELECT sum(price) FROM car WHERE model = 'golf'", "returns only NULL or 0", "SELECT sum(price) FROM car", "SELECT sum(price) FROM car"},
	} {
		reply = c.reply
		var all []Candidate
		for _, source := range []string{"x", "y"} { // enough clean ones, so that nothing is written anew
			all = append(all, rollout(source, "SELECT name FROM maker"))
		}
		out, err := r.Repair(context.Background(), pool(append(all, rollout("a", c.query))...))
		if err != nil {
			t.Fatal(err)
		}
		if got := out.Candidates[0].SQL; got != c.want || !strings.Contains(heard, c.says) || len(out.Candidates) != 3 {
			t.Errorf("%s is %s, want %s; heard %s", c.query, got, c.want, heard)
		}
		heard = ""
	}
}

// A pool that has collapsed is written anew, once, as one provenance group.
func TestRecovery(t *testing.T) {
	d := makeDatabase(t, 0, shop...)
	s, calls := stub(t, func(_ int64, w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), "attempts failed") {
			io.WriteString(w, answering("no idea"))
			return
		}
		one, two := answering("SELECT name FROM maker"), answering("SELECT nme FROM maker")
		io.WriteString(w, strings.Replace(one, "]", ","+two[strings.Index(two, "[")+1:strings.Index(two, "]")]+"]", 1))
	})
	r := repairer(d)
	r.Corrector = &Corrector{Server: s, Prompter: prompter(d), Style: Compact, Samples: 2}
	out, err := r.Repair(context.Background(), pool(rollout("a", "SELECT brand FROM maker")))
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string]bool{}
	for _, x := range out.Candidates[1:] {
		groups[x.Group()] = true
	}
	if len(out.Candidates) != 3 || len(groups) != 1 || out.Candidates[1].State != Clean || out.Cost.Calls != int(calls.Load()) {
		t.Errorf("%d candidates in %d groups, %+v, %d calls", len(out.Candidates), len(groups), out.Cost, calls.Load())
	}
}
