package solve

import (
	"context"
	"fmt"
	"strings"

	"caper/data"
	"caper/model/remote"
	"caper/sql"
)

// Style is a way to write a prompt. Two styles of one generator make other mistakes.
type Style string

const (
	// Compact is the prompt that caper's own models are trained on: a table a line, and
	// nothing else (data.Benchmark.Prompt).
	Compact Style = "compact"
	// DDL is the schema as CREATE TABLE statements, with the database's values that the
	// question mentions, demonstrations, and an instruction.
	DDL Style = "ddl"
)

// ParseStyle reads a style's name.
func ParseStyle(name string) (Style, error) {
	switch s := Style(name); s {
	case Compact, DDL:
		return s, nil
	}
	return "", fmt.Errorf("prompt style %q: want compact or ddl", name)
}

// Prompter writes prompts. It is safe for concurrent use.
type Prompter struct {
	// Compact writes the schema and the question in short; data.Benchmark.Prompt does.
	Compact func(data.Question) (string, error)
	// Databases are where schemas and values come from.
	Databases Databases
	// Demonstrations are shown with the question, the most similar ones first; nil: none.
	Demonstrations *Demonstrations
	// MaxValues is how many values of the database are shown, at most.
	MaxValues int

	values valueIndexes
}

// NewPrompter returns one that shows eight values.
func NewPrompter(bench *data.Benchmark) *Prompter {
	return &Prompter{Compact: bench.Prompt, Databases: bench, MaxValues: 8}
}

const instruction = "Write one SQLite query that answers the question. Reply with the query only, in a ```sql block."

// Messages is the conversation that asks for a query.
func (p *Prompter) Messages(ctx context.Context, q data.Question, style Style) ([]remote.Message, error) {
	text, err := p.Text(ctx, q, style)
	if err != nil {
		return nil, err
	}
	if style == Compact {
		text += "\n" + instruction
	}
	return []remote.Message{{Role: "user", Content: text}}, nil
}

// Text is the prompt in a style.
func (p *Prompter) Text(ctx context.Context, q data.Question, style Style) (string, error) {
	if style == Compact {
		return p.Compact(q)
	}
	var out strings.Builder
	schema, err := p.Databases.Schema(q.DBID)
	if err != nil {
		return "", err
	}
	writeDDL(&out, schema)
	if err := p.writeValues(ctx, &out, q, schema); err != nil {
		return "", err
	}
	for _, d := range p.Demonstrations.similar(q) {
		fmt.Fprintf(&out, "\n-- an example from another database: %s\n%s;\n", oneLine(d.Question), oneLine(d.Gold))
	}
	if q.Evidence != "" {
		fmt.Fprintf(&out, "\n-- evidence: %s", oneLine(q.Evidence))
	}
	fmt.Fprintf(&out, "\n-- question: %s\n\n%s\n", oneLine(q.Question), instruction)
	return out.String(), nil
}

func writeDDL(out *strings.Builder, schema *sql.Schema) {
	for _, t := range schema.Tables {
		fmt.Fprintf(out, "CREATE TABLE %s (\n", quoteName(t.Name))
		for i, c := range t.Columns {
			if i > 0 {
				out.WriteString(",\n")
			}
			fmt.Fprintf(out, "  %s %s", quoteName(c.Name), c.Type)
			if c.PrimaryKey {
				out.WriteString(" PRIMARY KEY")
			}
		}
		for _, k := range schema.ForeignKeys {
			if strings.EqualFold(k.Table, t.Name) {
				fmt.Fprintf(out, ",\n  FOREIGN KEY (%s) REFERENCES %s(%s)", quoteName(k.Column), quoteName(k.RefTable), quoteName(k.RefColumn))
			}
		}
		out.WriteString("\n);\n")
	}
}

// writeValues lists where the database has what the question mentions. Without a
// database there is nothing to list.
func (p *Prompter) writeValues(ctx context.Context, out *strings.Builder, q data.Question, schema *sql.Schema) error {
	db, err := p.Databases.Database(q.DBID)
	if err != nil {
		return nil
	}
	found, err := p.values.mentioned(ctx, db, schema, q.Question+" "+q.Evidence)
	if err != nil {
		return err
	}
	for i, v := range found {
		if i == 0 {
			out.WriteString("\n")
		}
		if i == p.MaxValues {
			break
		}
		fmt.Fprintf(out, "-- %s.%s has the value %s\n", quoteName(v.table), quoteName(v.column), quoteText(v.value))
	}
	return nil
}
