package data

import (
	"regexp"
	"strings"

	"caper/sql"
)

// Prompt returns what a model reads before the query: the schema, the evidence if
// there is any, and the question, verbatim. Gold has no part in it. For example
//
//	singer(Singer_ID int pk, Name text, `Net Worth` real)
//	song(Song_ID int pk, Singer_ID int -> singer.Singer_ID)
//	evidence: worth means `Net Worth`
//	question: How many singers are there?
//
// It is short, because a model reads it for every question: a table is a line, a
// type a word, a foreign key stands at its column. Names are spelled as a query
// must spell them.
func (b *Benchmark) Prompt(q Question) (string, error) {
	schema, err := b.schemaText(q.DBID)
	if err != nil {
		return "", err
	}
	return PromptText(schema, q), nil
}

// PromptText is a prompt with a schema as Prompt says it.
func PromptText(schema string, q Question) string {
	var text strings.Builder
	text.WriteString(schema)
	if q.Evidence != "" {
		text.WriteString("evidence: " + q.Evidence + "\n")
	}
	text.WriteString("question: " + q.Question + "\n")
	return text.String()
}

// schemaText is the prompt's part on the schema, written once for each database.
func (b *Benchmark) schemaText(dbID string) (string, error) {
	s, err := b.Schema(dbID)
	if err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if text, ok := b.prompts[dbID]; ok {
		return text, nil
	}
	var text strings.Builder
	writeSchema(&text, s)
	b.prompts[dbID] = text.String()
	return text.String(), nil
}

func writeSchema(text *strings.Builder, s *sql.Schema) {
	for _, t := range s.Tables {
		text.WriteString(spell(t.Name) + "(")
		for i, c := range t.Columns {
			if i > 0 {
				text.WriteString(", ")
			}
			text.WriteString(spell(c.Name))
			if word := typeWord(c.Type); word != "" {
				text.WriteString(" " + word)
			}
			if c.PrimaryKey {
				text.WriteString(" pk")
			}
			for _, k := range s.ForeignKeys {
				if k.Table == t.Name && k.Column == c.Name {
					text.WriteString(" -> " + spell(k.RefTable) + "." + spell(k.RefColumn))
				}
			}
		}
		text.WriteString(")\n")
	}
}

// typeWord shortens a declared type to what a query has to know.
func typeWord(declared string) string {
	lower := strings.ToLower(declared)
	for _, name := range []string{"datetime", "timestamp", "date", "time", "bool"} {
		if strings.HasPrefix(lower, name) {
			return name
		}
	}
	switch sql.TypeAffinity(declared) {
	case sql.AffinityText:
		return "text"
	case sql.AffinityInteger:
		return "int"
	case sql.AffinityReal:
		return "real"
	case sql.AffinityNumeric:
		return "num"
	}
	return ""
}

var bareName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// spell writes a name as SQLite reads it: bare where it may be, else in back quotes,
// which are never taken for a string.
func spell(name string) string {
	if bareName.MatchString(name) && !reserved[strings.ToUpper(name)] {
		return name
	}
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}

// reserved are SQLite's keywords that cannot stand for a column as they are. Other
// keywords fall back to names.
var reserved = wordSet(`TRUE FALSE ADD ALL ALTER AND AS AUTOINCREMENT BETWEEN CASE CAST CHECK COLLATE COMMIT
	CONSTRAINT CREATE CROSS CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP DEFAULT DEFERRABLE
	DELETE DISTINCT DROP ELSE ESCAPE EXCEPT EXISTS FOREIGN FROM FULL GROUP HAVING IN INDEX INNER
	INSERT INTERSECT INTO IS ISNULL JOIN LEFT LIMIT NATURAL NOT NOTHING NOTNULL NULL ON OR ORDER
	OUTER PRIMARY RAISE REFERENCES RETURNING RIGHT SELECT SET TABLE THEN TO TRANSACTION UNION UNIQUE
	UPDATE USING VALUES WHEN WHERE`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}
