package report

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"caper/eval"
	"caper/train/prm"
)

// document is what a browser would find in a page: its elements and its text.
type document struct {
	elements   map[string]int
	attributes []string
	text       string
}

// parse reads a page. The template is written so that it is XML too, which makes a
// strict parser of it: an unclosed element or a stray "<" is an error.
func parse(t *testing.T, html string) document {
	t.Helper()
	doc := document{elements: map[string]int{}}
	var text strings.Builder
	for d := xml.NewDecoder(strings.NewReader(html)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well formed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			doc.elements[token.Name.Local]++
			for _, a := range token.Attr {
				doc.attributes = append(doc.attributes, a.Name.Local+"="+a.Value)
			}
		case xml.CharData:
			text.Write(token)
		}
	}
	doc.text = text.String()
	return doc
}

func rendered(t *testing.T, p Page) string {
	t.Helper()
	text, err := render(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFullPage(t *testing.T) {
	p := fullPage()
	html := rendered(t, p)
	doc := parse(t, html)
	for _, want := range []string{
		p.Title, p.Summary, p.Simulated, p.Machine, "4 March 2025", "no-propagation", "unseen databases, new words",
		"logistic", "lexical", "frequent", "longest", "first", "random", "failing, verified", "where.comparison", "no_such_name",
		"19,000 (61 %)", "Łazienki", "NULL", "first 6 of 1,000 rows, cut at the row limit", "loss.margin = \"none\", not \"weight\"",
		p.Examples[19].Correct,
	} {
		if !strings.Contains(doc.text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if n := strings.Count(html, `class="card example"`); n != len(p.Examples) {
		t.Errorf("%d examples, want %d", n, len(p.Examples))
	}
	if n := strings.Count(html, "truly at fault"); n != len(p.Examples) {
		t.Errorf("%d faulty clauses marked, want one an example", n)
	}
	if n := strings.Count(html, `class="plot"`); n != 4 {
		t.Errorf("%d line charts, want 4", n)
	}
}

// A page that needs nothing else opens anywhere.
func TestNothingExternal(t *testing.T) {
	html := rendered(t, fullPage())
	for _, loader := range []string{"http:", "https:", "src=", "<link", "<script", "url(", "@import", "<base"} {
		if strings.Contains(html, loader) {
			t.Errorf("the page contains %q", loader)
		}
	}
	for _, theme := range []string{"prefers-color-scheme: dark", "width=device-width"} {
		if !strings.Contains(html, theme) {
			t.Errorf("the page lacks %q", theme)
		}
	}
}

const hostile = `</style><script>alert("1")</script><img src=x onerror='alert(1)'> & {{.}} %3Cscript%3E]]>`

// Whatever the data hold stays text.
func TestHostileTextIsEscaped(t *testing.T) {
	p := fullPage()
	before := parse(t, rendered(t, p))
	spoil(reflect.ValueOf(&p).Elem())
	after := parse(t, rendered(t, p))
	for _, element := range []string{"script", "img"} {
		if after.elements[element] > 0 {
			t.Errorf("the data made %d <%s> elements", after.elements[element], element)
		}
	}
	if after.elements["style"] != before.elements["style"] || after.elements["details"] != before.elements["details"] {
		t.Error("the data changed the page's structure")
	}
	if n := strings.Count(after.text, hostile); n < 100 {
		t.Errorf("the text is legible %d times only", n)
	}
	for _, a := range after.attributes {
		if strings.HasPrefix(a, "on") {
			t.Errorf("the data made the attribute %q", a)
		}
	}
}

// spoil adds to every string of a value that is reached without a map; those that
// were equal stay so.
func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.Len() > 0 {
			v.SetString(v.String() + hostile)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				spoil(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			spoil(v.Index(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			spoil(v.Elem())
		}
	case reflect.Interface:
		if text, ok := v.Interface().(string); ok {
			v.Set(reflect.ValueOf(text + hostile))
		}
	}
}

func TestEmptyPages(t *testing.T) {
	nothing := eval.Localize(nil, nil, nil, eval.LocalizeOptions{Resamples: 1})
	for name, p := range map[string]Page{
		"nothing":           {},
		"a run of no steps": {Runs: []Run{{Name: "a", Config: prm.Defaults()}}},
		"a test of nothing": {Tests: []Test{{Name: "t", Run: "a", Natural: &nothing}}},
		"no results":        {Tests: []Test{{Name: "t", Run: "a"}}},
		"empty parts":       {Annotations: make([]Annotation, 1), Examples: make([]Example, 1), Timings: make([]Timing, 1), Facts: make([]Fact, 1)},
	} {
		t.Run(name, func(t *testing.T) { parse(t, rendered(t, p)) })
	}
}

// A run that diverged is the one whose report is needed most.
func TestNumbersThatAreNone(t *testing.T) {
	p := fullPage()
	nan, inf := math.NaN(), math.Inf(1)
	p.Runs[0].Metrics[3].Loss, p.Runs[0].Metrics[4].Loss, p.Runs[1].Metrics[5].Accuracy = &nan, &inf, &nan
	p.Tests[0].Natural.Top1, p.Tests[0].Balanced.Top1Interval = nan, eval.Interval{nan, inf}
	p.Examples[0].Clauses[0].Score, p.Examples[0].Clauses[1].Score = nan, math.Inf(-1)
	for _, a := range parse(t, rendered(t, p)).attributes {
		if name, value, _ := strings.Cut(a, "="); name != "title" && (strings.Contains(value, "NaN") || strings.Contains(value, "Inf")) {
			t.Errorf("attribute %s", a)
		}
	}
}

func TestWriteIsWholeOrNot(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.html")
	if err := Write(path, fullPage()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(strings.TrimSpace(string(text)), "</html>") {
		t.Error("the file has no end")
	}
	if err := Write(filepath.Join(dir, "missing", "report.html"), Page{}); err == nil {
		t.Error("written into a folder that does not exist")
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
}
