package report

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"caper/report/series"
)

// writePolicy writes a run folder as caper train grpo leaves one: EX grows from a quarter
// to three quarters in 20 steps, and the second of two validations, at step 20, is best.
func writePolicy(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "config.toml"), []byte("[model]\npath = 'runs/sft/model'\n[train]\nbench = 'bench'\nlr = 1e-6\nout = '"+name+"'\n[reward]\nkind = 'clause'\nmodel = 'runs/prm/model'\n[policy]\nkl = 0.001\n"))
	var lines, samples strings.Builder
	for step := 1; step <= 20; step++ {
		ex := 0.25 + 0.5*float64(step)/20
		fmt.Fprintf(&lines, `{"step":%d,"loss":%g,"ex":%g,"samples":16,"entropy":0.5,"clause_scores":{"SELECT":0.5,"WHERE":0.25},"outcomes":{"correct":%d,"wrong":%d},"group_outcomes":{"0":1,"8":1},"seconds":{"sample":2,"train":1},"agreement":{"auc":0.75,"defined":true}}`+"\n",
			step, 1/float64(step), ex, step, 20-step)
		if step%10 == 0 {
			fmt.Fprintf(&lines, `{"step":%d,"validation_ex":%g,"validated":100,"best":true}`+"\n", step, 0.03*float64(step))
		}
	}
	lines.WriteString(`{"step":21,"alarms":["the reward model's mean rose"]}` + "\n" + `{"step":22,"lo`)
	writeFile(t, filepath.Join(dir, series.FileName), []byte(lines.String()))
	for _, step := range []int{10, 20} {
		for question := range 2 {
			for sample := range 2 {
				fmt.Fprintf(&samples, `{"step":%d,"question_id":%d,"db_id":"zoo","question":"How many at %d?","gold":"SELECT gold","sql":"SELECT %d","sample":%d,"verdict":"%s","clauses":[{"kind":"SELECT","text":"SELECT %d","score":0.9,"advantage":-0.5}]}`+"\n",
					step, question, step, sample, sample, []string{"correct", "wrong"}[sample], sample)
			}
		}
	}
	writeFile(t, filepath.Join(dir, "rollouts.jsonl"), []byte(samples.String()+`{"step":`))
	return dir
}

// writeVerdicts judges 50 questions, the first right of them correct.
func writeVerdicts(t *testing.T, right int) string {
	t.Helper()
	var text []byte
	for i := range 50 {
		verdict := "correct"
		if i >= right {
			verdict = "wrong"
		}
		line, err := json.Marshal(map[string]any{"dataset": "d", "question_id": i, "db_id": "zoo", "question": "q", "gold": "SELECT 1", "sql": "SELECT 2",
			"source": "policy", "sample": 0, "metric": "ex", "rule": "spider", "verdict": verdict})
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, line...), '\n')
	}
	path := filepath.Join(t.TempDir(), "verdicts.jsonl")
	writeFile(t, path, text)
	return path
}

func TestPolicyPage(t *testing.T) {
	clause, sparse := writePolicy(t, "clause"), writePolicy(t, "sparse")
	p, err := RunPage([]string{clause, sparse}, nil, []string{"clause=" + writeVerdicts(t, 20), "sparse=" + writeVerdicts(t, 30)})
	if err != nil {
		t.Fatal(err)
	}
	html := rendered(t, p)
	doc := parse(t, html)
	for _, want := range []string{
		"Runs clause and sparse", "60.0 (20)", "50.2 to 69.1", // Wilson's interval of 60 of 100
		"Step 21: the reward model's mean rose", "How many at 20?", "1 of 2 right", "-0.50",
		"60.0, +20.0 points", "p 0.002", // ten questions only the second got right: 2 / 2^10
		"the first 4 steps", "SELECT", "WHERE", "2 s", "runs/sft/model", "n = 50",
	} {
		if !strings.Contains(doc.text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(doc.text, "How many at 10?") {
		t.Error("samples of an earlier step are shown")
	}
	// Validation, EX, loss, entropy and AUC of both; two breakdowns of each.
	if n := strings.Count(html, `class="plot"`); n != 5+2*2 {
		t.Errorf("%d charts", n)
	}
	if n := strings.Count(html, `class="clause advantaged high2"`); n != 4 { // 0.9 is 2.4 thirds of the way from a half to 1
		t.Errorf("%d clauses of the colour of 0.9, want 4", n)
	}
}

// Each validation's dot is small but for the best one.
func TestKeptPolicy(t *testing.T) {
	p, err := RunPage([]string{writePolicy(t, "clause")}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Title != "Policy run clause" || !strings.Contains(p.Summary, "reward: clause (runs/prm/model)") {
		t.Errorf("%q, %q", p.Title, p.Summary)
	}
	var best []float64
	for _, d := range trainedPolicies(p.Policies).Curves[0].Lines[0].Dots {
		if d.Best {
			best = append(best, d.X)
		}
	}
	if !cmp.Equal(best, []float64{100}) {
		t.Errorf("best at %v %% of the axis", best)
	}
}

func TestBreakdown(t *testing.T) {
	var lines []series.Line
	for _, text := range []string{`{"step":1,"o":{"a":1,"b":3}}`, `{"step":2,"o":{"a":2}}`} {
		l, err := series.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	share := metric{share: true, bounds: [2]float64{0, 1}}
	c := breakdown(share, lines, "o", true)
	// a goes from 25 to 100 %, b from 75 to 0; y counts from the top.
	for i, want := range []string{"50.00,75.00 100.00,0.00", "50.00,25.00 100.00,100.00"} {
		if c.Lines[i].Points != want {
			t.Errorf("line %s: %s, want %s", c.Legend[i].Name, c.Lines[i].Points, want)
		}
	}
	if c := breakdown(share, lines, "nothing", true); c != nil {
		t.Errorf("a chart of nothing: %v", c)
	}
}

func TestMostSeenClausesInTheirOrder(t *testing.T) {
	seen := map[string]int{"LIMIT": 9, "WHERE": 10, "SELECT": 10, "FROM": 10, "ORDER BY": 9, "HAVING": 1, "GROUP BY": 9}
	if got, want := mostSeen(seen), []string{"SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT"}; !cmp.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Newcombe 1998, table I: 81 of 263 and 0 of 20.
func TestWilson(t *testing.T) {
	for _, want := range []struct{ share, n, low, high float64 }{{81. / 263, 263, 0.2553, 0.3662}, {0, 20, 0, 0.1611}} {
		got := wilson(want.share, want.n)
		if math.Abs(got[0]-want.low) > 1e-4 || math.Abs(got[1]-want.high) > 1e-4 {
			t.Errorf("%v of %v: %v", want.share, want.n, got)
		}
	}
}

func TestHostilePolicies(t *testing.T) {
	p, err := RunPage([]string{writePolicy(t, "clause")}, nil, []string{"clause=" + writeVerdicts(t, 20)})
	if err != nil {
		t.Fatal(err)
	}
	p.Policies[0].Verdicts = nil
	spoil(reflect.ValueOf(&p.Policies[0].Groups).Elem())
	spoil(reflect.ValueOf(&p.Policies[0].Alarms).Elem())
	p.Policies[0].Name, p.Policies[0].Config = hostile, hostile
	doc := parse(t, rendered(t, p))
	if doc.elements["script"]+doc.elements["img"] > 0 {
		t.Error("the data made elements")
	}
	if n := strings.Count(doc.text, hostile); n < 10 {
		t.Errorf("the text is legible %d times only", n)
	}
}

func TestRunsThatMakeNoPage(t *testing.T) {
	clause := writePolicy(t, "clause")
	file := writeVerdicts(t, 1)
	for name, try := range map[string]struct {
		dirs, localized, verdicts []string
		want                      string
	}{
		"no folder":            {dirs: []string{t.TempDir()}, want: "not a run folder"},
		"no RUN":               {dirs: []string{clause}, verdicts: []string{file}, want: "want RUN=FILE"},
		"an unknown run":       {dirs: []string{clause}, verdicts: []string{"x=" + file}, want: `no policy run "x"`},
		"no reward model":      {dirs: []string{clause}, localized: []string{file}, want: "belong to one reward model"},
		"verdicts of no judge": {dirs: []string{clause}, verdicts: []string{"clause=" + filepath.Join(clause, "rollouts.jsonl")}, want: "rollouts.jsonl:1"},
	} {
		if _, err := RunPage(try.dirs, try.localized, try.verdicts); err == nil || !strings.Contains(err.Error(), try.want) {
			t.Errorf("%s: %v, want %q", name, err, try.want)
		}
	}
}
