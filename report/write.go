package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"

	"caper/data"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

var page = template.Must(template.New("page").Parse(pageHTML))

// Write writes the page to path, in a folder that exists, as a whole or not at all.
func Write(path string, p Page) error {
	text, err := render(p)
	if err != nil {
		return fmt.Errorf("report %s: %w", path, err)
	}
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

// render makes the page's text. The template escapes every string of p for the
// place where it stands; the style sheet is the only text taken as it is.
func render(p Page) ([]byte, error) {
	var out bytes.Buffer
	err := page.Execute(&out, newView(p))
	return out.Bytes(), err
}
