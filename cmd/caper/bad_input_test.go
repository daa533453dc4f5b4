package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Input that is missing or broken is status 1 with one line that names the place,
// and leaves the folder as it was.
func TestBadInput(t *testing.T) {
	w := openWorkshop(t, "tuples", "model")
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	out := path("out.jsonl")
	put := func(name, text string) string { return writeFile(t, path(name), text) }

	rollout, _, _ := strings.Cut(readFile(t, w.rollouts), "\n")
	tuple, _, _ := strings.Cut(readFile(t, w.tuples), "\n")
	brokenRollouts := put("broken-rollouts.jsonl", rollout+"\n{\"sql\": \n")
	oddRollouts := put("odd-rollouts.jsonl", strings.Replace(rollout, `"db_id":"`, `"db_id":"not_`, 1)+"\n")
	brokenTuples := put("broken-tuples.jsonl", tuple+"\n"+strings.Replace(tuple, `"margin":`, `"margin":-`, 1)+"\n")
	empty := put("empty.jsonl", "")
	noise := put("noise.sqlite", strings.Repeat("This is no database. ", 100))
	unknownKey := put("unknown.toml", "[train]\nlr = 1e-3\nbatch_pair = 3\n")
	noToml := put("broken.toml", "[train\n")
	brokenJSON := put("broken.json", "{\"model\": ")
	noText := put("notext.jsonl", "{\"text\":\"a\"}\n{\"txt\":\"b\"}\n")
	badIDs := put("badids.jsonl", "{\"ids\":[1,\"two\"]}\n")
	farIDs := put("farids.jsonl", "{\"ids\":[1]}\n{\"ids\":[123456789]}\n")
	for _, broken := range []struct{ model, file, text string }{
		{"truncated", "model.safetensors", readFile(t, filepath.Join(w.model(), "model.safetensors"))[:3000]},
		{"noconfig", "config.json", ""},
		{"badconfig", "config.json", "{\"model_type\": \"gpt2\"}"},
		{"notokenizer", "tokenizer.json", "{}"},
	} {
		if err := os.CopyFS(path(broken.model), os.DirFS(w.model())); err != nil {
			t.Fatal(err)
		}
		file := put(filepath.Join(broken.model, broken.file), broken.text)
		if broken.text == "" {
			os.Remove(file)
		}
	}
	question, _, _ := strings.Cut(readFile(t, filepath.Join(w.bench, "train.json")), "}")
	dbID := strings.Split(question[strings.Index(question, `"db_id"`):], `"`)[3]
	if err := os.CopyFS(path("noisebench"), os.DirFS(w.bench)); err != nil {
		t.Fatal(err)
	}
	put(filepath.Join("noisebench", "database", dbID, dbID+".sqlite"), readFile(t, noise))
	if err := os.CopyFS(path("halfbench"), os.DirFS(w.bench)); err != nil {
		t.Fatal(err)
	}
	missing := path(filepath.Join("halfbench", "database", dbID, dbID+".sqlite"))
	os.Remove(missing)
	if err := os.CopyFS(path("barebench"), os.DirFS(w.bench)); err != nil {
		t.Fatal(err)
	}
	os.RemoveAll(path(filepath.Join("barebench", "database")))
	nullSQL := put("null-sql.jsonl", rollout+"\n"+rolloutWith(t, rollout, "null")+"\n")
	put("badbench/tables.json", "[{\"db_id\": ")
	put("badbench/train.json", "[{\"db_id\": ")

	annotate := func(bench, split, rollouts, out string) []string {
		return []string{"annotate", "--bench", bench, "--split", split, "--rollouts", rollouts, "--out", out}
	}
	evaluate := func(bench, split, pred, out string) []string {
		return []string{"eval", "ex", "--bench", bench, "--split", split, "--pred", pred, "--out", out}
	}
	score := func(model, in string) []string { return []string{"score", "--model", model, "--in", in, "--out", out} }
	localize := func(model, tuples string) []string { return []string{"localize", "--model", model, "--tuples", tuples} }
	train := func(words ...string) []string { return append([]string{"train", "prm"}, words...) }
	tokenizer := filepath.Join(w.model(), "tokenizer.json")
	tokenize := func(tokenizer, in string, more ...string) []string {
		return append([]string{"tokenize", "--tokenizer", tokenizer, "--in", in, "--out", out}, more...)
	}

	for _, k := range []struct {
		arguments []string
		want      []string
	}{
		{annotate(path("gone"), "train", w.rollouts, out), []string{path("gone")}},
		{annotate(w.model(), "train", w.rollouts, out), []string{w.model(), "no benchmark here", "tables.json"}},
		{annotate(path("badbench"), "train", w.rollouts, out), []string{"badbench/"}},
		{annotate(w.bench, "night", w.rollouts, out), []string{"night"}},
		{annotate(w.bench, "train", path("gone"), out), []string{path("gone")}},
		{annotate(w.bench, "train", brokenRollouts, out), []string{brokenRollouts + ":2"}},
		{annotate(w.bench, "train", oddRollouts, out), []string{oddRollouts + ":1", "not_" + dbID}},
		{annotate(w.bench, "train", w.rollouts, path("no/such/folder.jsonl")), []string{"write " + path("no/such/folder.jsonl") + ": its folder does not exist"}},
		{append(annotate(w.bench, "train", w.rollouts, out), "--summary", path("no/such/s.json")), []string{"write " + path("no/such/s.json") + ": its folder"}},
		{evaluate(w.bench, "train", w.rollouts, path("no/such/v.jsonl")), []string{"write " + path("no/such/v.jsonl") + ": its folder does not exist"}},
		{tokenize(tokenizer, noText, "--out", path("no/such/ids.jsonl")), []string{path("no/such/ids.jsonl"), "its folder"}},
		{[]string{"report", w.run, "--out", path("no/such/r.html")}, []string{path("no/such/r.html"), "its folder"}},
		{annotate(w.bench, "train", dir, out), []string{dir + ": is a directory", "name a file"}},
		{evaluate(w.bench, "train", dir, out), []string{dir + ": is a directory", "name a file"}},
		{score(w.model(), dir), []string{dir + ": is a directory"}},
		{localize(w.model(), dir), []string{dir + ": is a directory"}},
		{tokenize(tokenizer, dir), []string{dir + ": is a directory"}},
		{tokenize(dir, noText), []string{dir + ": is a directory"}},
		{train("train.out="+path("run"), "train.tuples="+dir), []string{dir + ": is a directory"}},
		{train("--config", dir), []string{dir + ": is a directory"}},
		{[]string{"eval", "compare", dir, dir}, []string{dir + ": is a directory"}},
		{[]string{"report", w.run, "--localize", dir, "--out", out}, []string{dir + ": is a directory"}},
		{append(annotate(w.bench, "train", w.rollouts, out), "--format", "bird"), []string{"bird", "spider"}},
		{annotate(path("noisebench"), "train", w.rollouts, out), []string{dbID + ".sqlite", "SQLite"}},
		{annotate(path("halfbench"), "train", w.rollouts, out), []string{missing, "1 of the 4 databases", "--not-db"}},
		{annotate(path("barebench"), "train", w.rollouts, out), []string{"4 of the 4 databases", ".sqlite", "--not-db"}},
		{annotate(w.bench, "train", nullSQL, out), []string{nullSQL + ":2", "sql"}},
		{annotate(w.bench, "train", empty, out), []string{empty, "no candidates"}},
		{evaluate(path("halfbench"), "train", w.rollouts, out), []string{missing, "1 of the 4 databases", "--not-db"}},
		{evaluate(path("barebench"), "train", w.rollouts, out), []string{"4 of the 4 databases", ".sqlite"}},
		{evaluate(path("gone"), "train", w.rollouts, out), []string{path("gone")}},
		{evaluate(w.bench, "train", brokenRollouts, out), []string{brokenRollouts + ":2"}},
		{append(evaluate(path("noisebench"), "train", w.rollouts, out), "--db", dbID), []string{dbID + ".sqlite", "SQLite"}},
		{score(path("gone"), w.rollouts), []string{path("gone")}},
		{score(path("truncated"), w.rollouts), []string{path("truncated/model.safetensors")}},
		{score(path("noconfig"), w.rollouts), []string{path("noconfig/config.json")}},
		{score(path("badconfig"), w.rollouts), []string{path("badconfig/config.json"), "model_type", "gpt2"}},
		{score(path("notokenizer"), w.rollouts), []string{path("notokenizer/tokenizer.json")}},
		{score(w.run, w.rollouts), []string{w.run, w.model()}},
		{score(w.model(), path("gone")), []string{path("gone")}},
		{score(w.model(), w.rollouts), []string{"prompt", "--bench"}},
		{localize(w.model(), path("gone")), []string{path("gone")}},
		{localize(w.model(), brokenTuples), []string{brokenTuples + ":2", "margin"}},
		{localize(path("truncated"), w.tuples), []string{path("truncated/model.safetensors")}},
		{localize(w.model(), empty), []string{empty}},
		{train("--config", path("gone.toml")), []string{path("gone.toml")}},
		{train("--config", unknownKey), []string{unknownKey + ":3", "train.batch_pair", "train.batch_pairs"}},
		{train("--config", noToml), []string{noToml + ":1"}},
		{train("train.out=" + path("run")), []string{"train.tuples"}},
		{train("train.tuples=" + w.tuples), []string{"train.out"}},
		{train("train.out="+path("run"), "train.tuples="+path("gone")), []string{path("gone")}},
		{train("train.out="+path("run"), "train.tuples="+brokenTuples), []string{brokenTuples + ":2", "margin"}},
		{train(w.training(w.run)...), []string{w.run, "--resume", "train.out"}},
		{train(append(w.training(w.run), "train.tuples="+path("gone"))...), []string{path("gone"), "no such file"}},
		{train("train.out="+path("run"), "train.tuples="+w.tuples, "model.path="+path("truncated")), []string{path("truncated/model.safetensors")}},
		{tokenize(path("gone"), noText), []string{path("gone")}},
		{tokenize(brokenJSON, noText), []string{brokenJSON}},
		{tokenize(tokenizer, path("gone")), []string{path("gone")}},
		{tokenize(tokenizer, noText), []string{noText + ":2", "text"}},
		{tokenize(tokenizer, badIDs, "--decode"), []string{badIDs + ":1", "ids"}},
		{tokenize(tokenizer, farIDs, "--decode"), []string{farIDs + ":2", "123456789"}},
		{[]string{"inspect", path("gone")}, []string{path("gone")}},
		{[]string{"inspect", path("truncated/model.safetensors")}, []string{path("truncated/model.safetensors")}},
		{[]string{"inspect", path("truncated")}, []string{path("truncated/model.safetensors")}},
		{[]string{"inspect", w.run}, []string{w.model()}},
		{[]string{"inspect", w.rollouts}, []string{w.rollouts + ":1", "not a tuple file"}},
		{append(localize(w.model(), w.tuples), "--baselines", "--training", path("gone")), []string{path("gone"), "--training"}},
		{[]string{"inspect", empty}, []string{empty}},
		{[]string{"inspect", brokenRollouts}, []string{brokenRollouts + ":"}},
		{[]string{"exec", "--db", path("gone"), "SELECT 1"}, []string{path("gone")}},
		{[]string{"exec", "--db", noise, "SELECT 1"}, []string{noise, "SQLite"}},
		{[]string{"report", path("gone")}, []string{path("gone")}},
		{[]string{"report", w.run, "--localize", brokenJSON, "--out", out}, []string{brokenJSON, "ends too early"}},
		{[]string{"report", w.run, "--localize", empty, "--out", out}, []string{empty, "nothing is in it"}},
		{[]string{"sample", w.bench}, []string{w.bench, "empty"}},
	} {
		before, shop := listing(t, dir), listing(t, filepath.Dir(w.bench))
		r := caper(t, k.arguments...)
		if r.status != exitFailed && !(r.status == exitUsage && k.arguments[0] == "train") {
			t.Errorf("%v: status %d", k.arguments, r.status)
		}
		oneLine(t, k.arguments, r, k.want)
		unchanged(t, k.arguments, before, listing(t, dir))
		unchanged(t, k.arguments, shop, listing(t, filepath.Dir(w.bench)))
	}
}

// rolloutWith is a rollout with another JSON value of sql.
func rolloutWith(t *testing.T, rollout, value string) string {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(rollout), &fields); err != nil {
		t.Fatal(err)
	}
	fields["sql"] = json.RawMessage(value)
	line, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

// What the benchmark lacks can be left out.
func TestMissingDatabaseLeftOut(t *testing.T) {
	w := openWorkshop(t)
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "bench"), os.DirFS(w.bench)); err != nil {
		t.Fatal(err)
	}
	databases, err := filepath.Glob(filepath.Join(dir, "bench", "database", "*", "*.sqlite"))
	if err != nil || len(databases) == 0 {
		t.Fatal(err)
	}
	var lost string
	for _, path := range databases {
		if id := strings.TrimSuffix(filepath.Base(path), ".sqlite"); strings.Contains(readFile(t, filepath.Join(w.bench, "train.json")), `"`+id+`"`) {
			lost = id
			os.Remove(path)
			break
		}
	}
	out := filepath.Join(dir, "out.jsonl")
	must(t, "eval", "ex", "--bench", filepath.Join(dir, "bench"), "--split", "train", "--pred", w.rollouts, "--out", out, "--not-db", lost)
	if n := len(lines(readFile(t, out))); n != 45 {
		t.Errorf("%d verdicts of three of four databases", n)
	}
	ones := filepath.Join(dir, "ones.txt")
	writeFile(t, ones, strings.Repeat("SELECT 1\n", strings.Count(readFile(t, filepath.Join(w.bench, "train.json")), `"db_id"`)))
	compare := []string{"eval", "compare", "--bench", filepath.Join(dir, "bench"), "--split", "train", ones, ones}
	if r := caper(t, compare...); r.status != exitFailed || !strings.Contains(r.stderr, "--not-db") {
		t.Errorf("status %d: %s", r.status, r.stderr)
	}
	if r := must(t, append(compare, "--not-db", lost)...); !strings.Contains(r.stderr, "only A right 0, only B 0") {
		t.Error(r.stderr)
	}
}

func unchanged(t *testing.T, arguments []string, before, after map[string]string) {
	t.Helper()
	for path, text := range after {
		if old, ok := before[path]; !ok || old != text {
			t.Errorf("%v: left or changed %s", arguments, path)
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			t.Errorf("%v: removed %s", arguments, path)
		}
	}
}

// A file that is there is replaced only by a whole one.
func TestFailureKeepsTheOldOutput(t *testing.T) {
	w := openWorkshop(t)
	dir := t.TempDir()
	rollout, _, _ := strings.Cut(readFile(t, w.rollouts), "\n")
	broken := writeFile(t, filepath.Join(dir, "in.jsonl"), rollout+"\n{\n")
	out := writeFile(t, filepath.Join(dir, "out.jsonl"), "precious")
	if r := caper(t, "annotate", "--bench", w.bench, "--split", "train", "--rollouts", broken, "--out", out); r.status != exitFailed {
		t.Errorf("%+v", r)
	}
	if files := listing(t, dir); files[out] != "precious" || len(files) != 3 {
		t.Errorf("%q", files)
	}
}
