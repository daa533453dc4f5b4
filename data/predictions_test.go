package data

import (
	"slices"
	"strings"
	"testing"
)

// Whatever a prediction says of its question, the split's gold is what it is judged by;
// what it said is kept.
func TestGoldOfPredictions(t *testing.T) {
	dir := spiderFolder(t)
	b := open(t, dir)
	questions, err := b.Questions("dev")
	if err != nil {
		t.Fatal(err)
	}
	gold := questions[0].Gold
	own := write(t, t.TempDir(), "own.jsonl", `{"question_id": 0, "sql": "SELECT 1", "gold": "SELECT 1", "question": "another?", "dataset": "x"}`+"\n"+
		`{"question_id": 0, "sql": "SELECT 1", "sample": 1, "gold": " `+strings.ReplaceAll(gold, `"`, `\"`)+` ;"}`+"\n"+
		`{"question_id": 0, "sql": "SELECT 1", "sample": 2}`+"\n")
	all, err := collect(ReadPredictions([]string{own}, b, "dev"))
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range all {
		if r.Gold != gold || r.Question != questions[0].Question || r.Dataset != b.Name {
			t.Errorf("%+v", r)
		}
		if given := string(r.Extra[OtherGold]); (given == `"SELECT 1"`) != (i == 0) || i > 0 && given != "" {
			t.Errorf("line %d: other gold %s", i+1, given)
		}
	}

	noGold := slices.Clone(questions)
	noGold[0].Gold = ""
	b.UseQuestions("dev", noGold)
	all, err = collect(ReadPredictions([]string{own}, b, "dev"))
	if err != nil || all[0].Gold != "SELECT 1" || all[0].Extra[OtherGold] != nil {
		t.Errorf("where the split has no gold: %+v %v", all[0], err)
	}
}

// A BIRD prediction that is no text is one without a query, as for the official script.
func TestPredictionsThatAreNoTexts(t *testing.T) {
	b := open(t, spiderFolder(t))
	all, err := collect(ReadPredictions([]string{write(t, t.TempDir(), "p.json", `{"0": null, "1": 7.5}`)}, b, "dev"))
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	for i, want := range []string{"null", "7.5"} {
		if r := all[i]; r.SQL != "" || string(r.Extra[NotText]) != want || r.Gold == "" {
			t.Errorf("%+v", r)
		}
	}
}

func TestRepeatedPredictions(t *testing.T) {
	b := open(t, spiderFolder(t))
	dir, other := t.TempDir(), t.TempDir()
	line := `{"question_id": 0, "sql": "SELECT 1", "source": "m"}` + "\n"
	maps := `{"idx": 0, "preds": {"m": {"sql": "SELECT 1"}}}` + "\n"
	for want, files := range map[string][]string{
		"own.jsonl:3: question 0 has a prediction of \"m\" with sample 0 already, in": {write(t, dir, "own.jsonl", line+"\n"+line)},
		"maps.jsonl:2: question 0 has": {write(t, dir, "maps.jsonl", maps+maps)},
		"spider.txt:1: question 0 has": {write(t, dir, "spider.txt", "SELECT 1\nSELECT 2"), write(t, other, "spider.txt", "SELECT 1\nSELECT 2")},
		"more.jsonl:1: question 0 has": {write(t, dir, "first.jsonl", line), write(t, dir, "more.jsonl", line)},
	} {
		if _, err := collect(ReadPredictions(files, b, "dev")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("have %v, want %s", err, want)
		}
	}
	apart := line + strings.Replace(line, "}", `, "sample": 1}`, 1) + strings.Replace(line, `"m"`, `"n"`, 1)
	if all, err := collect(ReadPredictions([]string{write(t, dir, "apart.jsonl", apart)}, b, "dev")); err != nil || len(all) != 3 {
		t.Error(all, err)
	}
}
