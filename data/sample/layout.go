package sample

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// spiderTables is one entry of tables.json. Columns are numbered over the whole
// database, from 1; number 0 is the "*" that the format begins with.
type spiderTables struct {
	ColumnNames         []spiderColumn `json:"column_names"`
	ColumnNamesOriginal []spiderColumn `json:"column_names_original"`
	ColumnTypes         []string       `json:"column_types"`
	DBID                string         `json:"db_id"`
	ForeignKeys         [][2]int       `json:"foreign_keys"` // child column, parent column
	PrimaryKeys         []int          `json:"primary_keys"`
	TableNames          []string       `json:"table_names"`
	TableNamesOriginal  []string       `json:"table_names_original"`
}

// spiderColumn is the pair [table number, name].
type spiderColumn struct {
	table int
	name  string
}

func (c spiderColumn) MarshalJSON() ([]byte, error) { return json.Marshal([]any{c.table, c.name}) }

func (c *spiderColumn) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&c.table, &c.name})
}

// spiderQuestion is one entry of SPLIT.json.
type spiderQuestion struct {
	DBID     string `json:"db_id"`
	Question string `json:"question"`
	Query    string `json:"query"`
}

// plan is one line of plans/SPLIT.jsonl: the gold query of the entry with the
// same index in SPLIT.json, as the value it was rendered from. The simulated
// writers need it; nothing else does.
type plan struct {
	Style Style  `json:"style"`
	Query *Query `json:"query"`
}

func splitPath(dir, split string) string { return filepath.Join(dir, split+".json") }
func planPath(dir, split string) string  { return filepath.Join(dir, "plans", split+".jsonl") }

// writeLayout writes tables.json, SPLIT.json and plans/SPLIT.jsonl. Questions
// of a split stand in the order of databases.
func writeLayout(dir string, databases []*database) error {
	var tables []spiderTables
	for _, d := range databases {
		tables = append(tables, d.schema.spider())
	}
	if err := writeIndented(filepath.Join(dir, "tables.json"), tables); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "plans"), 0o755); err != nil {
		return err
	}
	for _, split := range Splits {
		questions := []spiderQuestion{}
		var plans bytes.Buffer
		for _, d := range databases {
			for _, e := range d.examples {
				if e.split != split {
					continue
				}
				questions = append(questions, spiderQuestion{d.schema.id, e.question, e.query.SQL(e.style)})
				line, err := encode(plan{e.style, e.query})
				if err != nil {
					return err
				}
				plans.Write(line)
			}
		}
		if err := writeIndented(splitPath(dir, split), questions); err != nil {
			return err
		}
		if err := os.WriteFile(planPath(dir, split), plans.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// encode returns v as one line of JSON; SQL's < and > stay readable.
func encode(v any) ([]byte, error) {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return line.Bytes(), err
}

func writeIndented(path string, v any) error {
	line, err := encode(v)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, line, "", "  "); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

// spider describes the schema in Spider's format.
func (s *schema) spider() spiderTables {
	out := spiderTables{
		ColumnNames:         []spiderColumn{{-1, "*"}},
		ColumnNamesOriginal: []spiderColumn{{-1, "*"}},
		ColumnTypes:         []string{"text"},
		DBID:                s.id,
		ForeignKeys:         [][2]int{},
	}
	key := map[string]int{} // table to the number of its primary key
	for t, tab := range s.tables {
		out.TableNames = append(out.TableNames, tab.name)
		out.TableNamesOriginal = append(out.TableNamesOriginal, tab.name)
		for _, c := range tab.columns {
			number := len(out.ColumnNames)
			out.ColumnNames = append(out.ColumnNames, spiderColumn{t, strings.ReplaceAll(c.name, "_", " ")})
			out.ColumnNamesOriginal = append(out.ColumnNamesOriginal, spiderColumn{t, c.name})
			out.ColumnTypes = append(out.ColumnTypes, c.spiderType())
			switch {
			case c.parent != "":
				out.ForeignKeys = append(out.ForeignKeys, [2]int{number, key[c.parent]})
			case c.attribute == nil:
				key[tab.name] = number
				out.PrimaryKeys = append(out.PrimaryKeys, number)
			}
		}
	}
	return out
}

func (c column) spiderType() string {
	switch {
	case c.attribute == nil || c.attribute.numeric():
		return "number"
	case c.attribute.kind == date:
		return "time"
	}
	return "text"
}

// schemaOf is the inverse of spider, for schemas of this package's vocabularies.
func schemaOf(t spiderTables) (*schema, error) {
	s := &schema{id: t.DBID}
	for _, name := range t.TableNamesOriginal {
		s.tables = append(s.tables, &table{name: name})
	}
	parents := map[int]int{}
	for _, pair := range t.ForeignKeys {
		parents[pair[0]] = pair[1]
	}
	keys := map[int]bool{}
	for _, k := range t.PrimaryKeys {
		keys[k] = true
	}
	for number, original := range t.ColumnNamesOriginal {
		if original.table < 0 {
			continue
		}
		if original.table >= len(s.tables) {
			return nil, fmt.Errorf("database %s: column_names_original: column %s: no table %d", t.DBID, original.name, original.table)
		}
		c := column{name: original.name}
		if parent, ok := parents[number]; ok && parent < len(t.ColumnNamesOriginal) {
			c.parent = t.TableNamesOriginal[t.ColumnNamesOriginal[parent].table]
		} else if keys[number] {
			s.key = c.name
		} else if c.attribute = attributeNamed(c.name); c.attribute == nil {
			return nil, fmt.Errorf("database %s: column %s is not of the sample benchmark: simulated rollouts can be written for it only", t.DBID, c.name)
		}
		tab := s.tables[original.table]
		tab.columns = append(tab.columns, c)
	}
	return s, nil
}

func attributeNamed(name string) *attribute {
	for _, v := range []*vocabulary{knownWords, unknownWords} {
		for _, a := range v.attributes {
			if a.name == name {
				return a
			}
		}
	}
	return nil
}

// readSchemas reads tables.json.
func readSchemas(dir string) (map[string]*schema, error) {
	path := filepath.Join(dir, "tables.json")
	var tables []spiderTables
	if err := readJSON(path, &tables); err != nil {
		return nil, err
	}
	schemas := map[string]*schema{}
	for _, t := range tables {
		s, err := schemaOf(t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		schemas[s.id] = s
	}
	return schemas, nil
}

// planned is one question with its plan.
type planned struct {
	question spiderQuestion
	plan     plan
}

// readSplit reads a split's questions with their plans and checks that the two
// files belong together.
func readSplit(dir, split string) ([]planned, error) {
	var questions []spiderQuestion
	if err := readJSON(splitPath(dir, split), &questions); err != nil {
		return nil, err
	}
	path := planPath(dir, split)
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: simulated rollouts need a benchmark written by this package", err)
	}
	defer file.Close()
	all := make([]planned, len(questions))
	lines := bufio.NewReader(file)
	for i, q := range questions {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("%s:%d: it ends here, and %s has %d questions: write the benchmark again", path, i+1, splitPath(dir, split), len(questions))
		}
		all[i].question = q
		if err := json.Unmarshal(line, &all[i].plan); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		if all[i].plan.Query == nil || all[i].plan.Query.SQL(all[i].plan.Style) != q.Query {
			return nil, fmt.Errorf("%s:%d: query is not the gold query of %s: write the benchmark again", path, i+1, splitPath(dir, split))
		}
	}
	return all, nil
}

func readJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
