package curriculum

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"caper/data"
)

// line is an Item as it stands in files.
type line struct {
	Dataset  string          `json:"dataset"`
	Split    string          `json:"split"`
	ID       data.QuestionID `json:"question_id"`
	DBID     string          `json:"db_id"`
	Question string          `json:"question"`
	Evidence string          `json:"evidence,omitempty"`
	Gold     string          `json:"query"`
	Origin   Origin          `json:"origin"`
	Of       data.QuestionID `json:"of"`
	Change   string          `json:"change,omitempty"`
	Rate
	Weight float64 `json:"weight"`
}

func lineOf(i Item) line {
	q := i.Question
	return line{q.Dataset, q.Split, q.ID, q.DBID, q.Question, q.Evidence, q.Gold, i.Origin, i.Of, i.Change, i.Rate, i.Weight}
}

func (l line) item() Item {
	q := data.Question{Dataset: l.Dataset, Split: l.Split, ID: l.ID, DBID: l.DBID, Question: l.Question, Evidence: l.Evidence, Gold: l.Gold}
	return Item{Question: q, Origin: l.Origin, Of: l.Of, Change: l.Change, Rate: l.Rate, Weight: l.Weight}
}

// Read reads a sampling table.
func Read(path string) ([]Item, error) {
	lines, err := readLines[line](path)
	if err != nil {
		return nil, err
	}
	var items []Item
	for i, l := range lines {
		if l.DBID == "" || l.Question == "" || l.ID.IsZero() || !(l.Weight >= 0 && l.Weight <= 1) {
			return nil, fmt.Errorf("%s:%d: want question_id, db_id, question and a weight in [0, 1]", path, i+1)
		}
		items = append(items, l.item())
	}
	return items, nil
}

// readLines reads a JSON Lines file.
func readLines[T any](path string) (all []T, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<26)
	for n := 1; lines.Scan(); n++ {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		all = append(all, v)
	}
	return all, lines.Err()
}

// writeTable writes the table to path; a reader never sees half of it.
func writeTable(path string, items []Item) error {
	var text bytes.Buffer
	for _, i := range items {
		l, err := data.Marshal(lineOf(i))
		if err != nil {
			return err
		}
		text.Write(append(bytes.TrimRight(l, "\n"), '\n'))
	}
	return replaceFile(path, text.Bytes())
}

func replaceFile(path string, text []byte) error {
	f, err := data.Create(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.Commit()
}

// Table is the sampling table of a stage.
type Table struct {
	Stage Stage
	Items []Item
	// Refused counts the questions that got no sibling, by the reason that most of what
	// was tried for them failed for.
	Refused map[string]int
}

// Drawn counts the questions of a weight above 0.
func (t *Table) Drawn() (n int) {
	for _, i := range t.Items {
		if i.Weight > 0 {
			n++
		}
	}
	return n
}

// bin is a line of the readable table.
type bin struct {
	questions, siblings int
	weight              float64
}

// Text is the table for people: how many questions there are of each rate and how often
// they are drawn, what became of those that are always or never answered right, and some
// siblings.
func (t *Table) Text() string {
	var out strings.Builder
	bins, none := make([]bin, t.Stage.Samples+1), 0
	for _, i := range t.Items {
		if i.Answers == 0 {
			none++
			continue
		}
		b := &bins[0]
		if i.Right == i.Answers {
			b = &bins[t.Stage.Samples]
		} else if i.Right > 0 {
			b = &bins[t.Stage.bin(i.Rate)]
		}
		b.questions++
		b.weight += i.Weight
		if i.Origin != Benchmark {
			b.siblings++
		}
	}
	fmt.Fprintf(&out, "%d of %d questions are drawn\n\n%8s %10s %10s %8s %14s\n", t.Drawn(), len(t.Items), "right", "questions", "siblings", "drawn", "drawn by turns")
	for k, b := range bins {
		each := 0.0
		if b.questions > 0 {
			each = 100 * b.weight / float64(b.questions)
		}
		fmt.Fprintf(&out, "%8s %10d %10d %6.1f %% %12.4f %%  %s\n", fmt.Sprintf("%d/%d", k, t.Stage.Samples), b.questions, b.siblings, 100*b.weight, each, strings.Repeat("#", int(60*b.weight+0.5)))
	}
	if none > 0 {
		fmt.Fprintf(&out, "%d questions have no answers that could be judged\n", none)
	}
	t.writeSiblings(&out)
	return out.String()
}

func (t *Table) writeSiblings(out *strings.Builder) {
	of, made, kept := map[data.QuestionID]Item{}, map[string]int{}, map[string]int{}
	for _, i := range t.Items {
		if i.Origin == Benchmark {
			of[i.Question.ID] = i
			continue
		}
		name := string(i.Origin) + ": " + i.Change
		made[name]++
		if i.Weight > 0 {
			kept[name]++
		}
	}
	if len(made) > 0 {
		fmt.Fprintln(out, "\nsiblings, and those of them that are drawn")
	}
	for _, name := range slices.Sorted(maps.Keys(made)) {
		fmt.Fprintf(out, "%8d %8d  %s\n", made[name], kept[name], name)
	}
	if len(t.Refused) > 0 {
		fmt.Fprintln(out, "\nquestions without a sibling, by what most tries failed for")
	}
	for _, reason := range slices.Sorted(maps.Keys(t.Refused)) {
		fmt.Fprintf(out, "%8d  %s\n", t.Refused[reason], reason)
	}
	shown := 0
	for _, i := range t.Items {
		if i.Origin == Benchmark || i.Weight == 0 || shown == 8 {
			continue
		}
		shown++
		was := of[i.Of]
		fmt.Fprintf(out, "\n%s (%s), %d of %d right before, %d of %d now\n  %s\n  %s\n  %s\n  %s\n", i.Origin, i.Change, was.Right, was.Answers, i.Right, i.Answers,
			was.Question.Question, was.Question.Gold, i.Question.Question, i.Question.Gold)
	}
}
