package sql

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3"
)

// Faults that users of other SQL parsers reported in public. Each test is named
// for the report's number in the project's list and must hold here.

// reportDB has the tables that the reports' queries are about.
func reportDB(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	for _, statement := range []string{
		`CREATE TABLE airlines(uid INTEGER PRIMARY KEY, Airline TEXT, Country TEXT)`,
		`INSERT INTO airlines VALUES (1, 'JetBlue Airways', 'USA'), (2, 'Alaska', 'usa'), (3, NULL, 'Airline')`,
		"CREATE TABLE events(`Start-Date` TEXT, END TEXT, Duration INTEGER, doc TEXT)",
		`INSERT INTO events VALUES ('2020-05-01', '', 3, '{"a b": 1}'), ('1999-12-31', 'x', NULL, '{}'), ('2001-01-01', NULL, 7, NULL)`,
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// keepsMeaning checks that a query parses, that its print gives the same rows, and
// that there are as many as wanted. It returns the tree with its names resolved.
func keepsMeaning(t *testing.T, db *sql.DB, text string, count int) (*Node, *Scopes) {
	t.Helper()
	n := mustParse(t, text)
	want, err := rows(db, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if got, err := rows(db, Render(n)); err != nil || !slices.Equal(got, want) || len(got) != count {
		t.Errorf("%s: %d rows, want %d\n\tprints as %s: %d rows, %v", text, len(want), count, Render(n), len(got), err)
	}
	return n, Resolve(n, schemaOf(t, db))
}

// find is the first node of a kind and value.
func find(n *Node, kind Kind, value string) (found *Node) {
	Walk(n, func(n *Node) bool {
		if found == nil && n.Kind == kind && n.Value == value {
			found = n
		}
		return found == nil
	})
	return found
}

// columnsUnder are the names of the columns in a tree.
func columnsUnder(n *Node) (names []string) {
	Walk(n, func(n *Node) bool {
		if n.Kind == Column {
			names = append(names, n.Value)
		}
		return true
	})
	return names
}

func TestReport09_QuotedTableName(t *testing.T) {
	db := reportDB(t)
	for _, name := range []string{`"airlines"`, "`airlines`", "[airlines]", "'airlines'", `"AIRLINES"`} {
		n, scopes := keepsMeaning(t, db, "SELECT Airline FROM "+name, 3)
		if b := scopes.Binding(find(n, Column, "Airline")); b.Meaning != MeansColumn || b.Source.Table == nil {
			t.Errorf("%s is not found in the schema", name)
		}
	}
}

func TestReport12_ChatAroundSQL(t *testing.T) {
	for _, text := range []string{
		"Sure! Here is the query:\n```sql\nSELECT Airline FROM airlines;\n```\nIt lists the airlines from which we select.",
		"```\nSELECT Airline FROM airlines\n```",
	} {
		units := Clauses(text)
		if len(units) != 2 || !strings.HasPrefix(text[units[1].Start:], "FROM airlines") {
			t.Errorf("%q is cut into %v", text, units)
		}
		checkPartition(t, text)
	}
}

func TestReport42_DoubleQuotedStringThatIsNoColumn(t *testing.T) {
	n, scopes := keepsMeaning(t, reportDB(t), `SELECT "nothing", "Airline" FROM airlines`, 3)
	if b := scopes.Binding(find(n, Column, "nothing")); b.Meaning != MeansString {
		t.Errorf(`"nothing" means %v`, b.Meaning)
	}
	if b := scopes.Binding(find(n, Column, "Airline")); b.Meaning != MeansColumn {
		t.Errorf(`"Airline" means %v`, b.Meaning)
	}
}

func TestReport43_AirlineEqualsJetBlue(t *testing.T) {
	db := reportDB(t)
	keepsMeaning(t, db, `SELECT Country FROM AIRLINES WHERE Airline = "JetBlue Airways"`, 1)
	schema := schemaOf(t, db)
	double := Canonical(mustParse(t, `SELECT Country FROM AIRLINES WHERE Airline = "JetBlue Airways"`), schema)
	single := Canonical(mustParse(t, `SELECT Country FROM AIRLINES WHERE Airline = 'JetBlue Airways'`), schema)
	if !Equal(double, single) {
		t.Error("the two kinds of quotes mean different things")
	}
	keepsMeaning(t, db, `SELECT uid FROM airlines WHERE Country = "Airline"`, 0) // here it is the column
}

func TestReport44_CastAsDate(t *testing.T) {
	n, _ := keepsMeaning(t, reportDB(t), "SELECT CAST(`Start-Date` AS DATE) FROM events", 3)
	if got := Render(n.Children[0]); got != "SELECT CAST(`Start-Date` AS DATE)" {
		t.Errorf("the cast becomes %s", got)
	}
}

func TestReport45_CollateIsNoColumn(t *testing.T) {
	n, _ := keepsMeaning(t, reportDB(t), "SELECT uid FROM airlines WHERE Country = 'usa' COLLATE NOCASE ORDER BY Airline COLLATE NOCASE", 2)
	if got := columnsUnder(n); !slices.Equal(got, []string{"uid", "Country", "Airline"}) {
		t.Errorf("columns %v", got)
	}
}

func TestReport46_ColumnNamedEnd(t *testing.T) {
	db := reportDB(t)
	for _, text := range []string{
		"SELECT `END` FROM events WHERE `END` IS NOT ''",
		`SELECT "END", [Start-Date] FROM events WHERE events."END" IS NOT ''`,
		"SELECT CASE WHEN `Start-Date` > '2000' THEN `END` ELSE 'old' END FROM events WHERE `END` IS NOT ''",
	} {
		_, scopes := keepsMeaning(t, db, text, 2)
		for n, b := range scopes.bindings {
			if b.Meaning != MeansColumn {
				t.Errorf("%s: %s means %v", text, n.Value, b.Meaning)
			}
		}
	}
}

func TestReport47_MixedCaseQuotedColumn(t *testing.T) {
	n, scopes := keepsMeaning(t, reportDB(t), `SELECT "aIRLINE", T."COUNTRY" FROM airlines AS t`, 3)
	for _, name := range []string{"aIRLINE", "COUNTRY"} {
		if b := scopes.Binding(find(n, Column, name)); b.Meaning != MeansColumn || b.Column < 0 {
			t.Errorf("%s is not found in the schema", name)
		}
	}
}

func TestReport48_AmbiguousIsNotUnknown(t *testing.T) {
	db := reportDB(t)
	const text = "SELECT Airline, missing FROM airlines AS a JOIN airlines AS b"
	n := mustParse(t, text)
	scopes := Resolve(n, schemaOf(t, db))
	if b := scopes.Binding(find(n, Column, "Airline")); b.Meaning != MeansColumn || !b.Ambiguous {
		t.Errorf("Airline means %v, ambiguous %v", b.Meaning, b.Ambiguous)
	}
	if b := scopes.Binding(find(n, Column, "missing")); b.Meaning != MeansNothing || b.Ambiguous {
		t.Errorf("missing means %v, ambiguous %v", b.Meaning, b.Ambiguous)
	}
	if err := prepare(db, text); err == nil || !strings.Contains(err.Error(), "ambiguous column name: Airline") {
		t.Errorf("SQLite says %v", err)
	}
}

func TestReport49_OrderByOutputName(t *testing.T) {
	db := reportDB(t)
	n, scopes := keepsMeaning(t, db, "SELECT uid AS Airline, Airline AS a FROM airlines ORDER BY Airline DESC, a", 3)
	order := n.Child(OrderBy).Children
	if b := scopes.Binding(order[0].Children[0]); b.Meaning != MeansOutput || b.Expr.Value != "uid" {
		t.Errorf("ORDER BY Airline means %v, not the output uid", b.Meaning)
	}
	schema := schemaOf(t, db)
	for _, same := range [][2]string{
		{"SELECT Airline FROM airlines ORDER BY Airline", "SELECT Airline FROM airlines AS x ORDER BY x.Airline"},
		{"SELECT count(*) AS n FROM airlines GROUP BY Country ORDER BY n", "SELECT count(*) FROM airlines GROUP BY Country ORDER BY count(*)"},
	} {
		if !Equal(Canonical(mustParse(t, same[0]), schema), Canonical(mustParse(t, same[1]), schema)) {
			t.Errorf("%s\n%s\n\tdiffer", same[0], same[1])
		}
	}
}

func TestReport50_NotInAndScalarSubquery(t *testing.T) {
	db := reportDB(t)
	keepsMeaning(t, db, "SELECT uid FROM airlines WHERE uid NOT IN (SELECT Duration FROM events WHERE Duration > 0)", 2)
	keepsMeaning(t, db, "SELECT CASE WHEN (SELECT count(*) FROM events) > 2 THEN (SELECT max(uid) FROM airlines) ELSE 0 END", 1)
	keepsMeaning(t, db, "WITH few AS (SELECT 1 UNION SELECT 2) SELECT uid FROM airlines WHERE uid NOT IN few", 1)
	keepsMeaning(t, db, "SELECT uid FROM airlines WHERE uid IN (SELECT 1)", 1)
}

func TestReport51_NotMySQL(t *testing.T) {
	db := reportDB(t)
	keepsMeaning(t, db, "SELECT Airline || '!' FROM airlines WHERE Country GLOB 'U*'", 1) // not a logical OR
	keepsMeaning(t, db, "SELECT uid FROM airlines ORDER BY uid LIMIT 1, 2", 2)
	keepsMeaning(t, db, "SELECT uid FROM airlines WHERE Airline IS NOT DISTINCT FROM NULL", 1)
	keepsMeaning(t, db, "SELECT 'it''s', 'a\\', 5 / 2, x'ab', 1 << 2 | 1 FROM airlines", 3) // a backslash escapes nothing
}

func TestReport52_ParenthesisedTableAndFlatIntersect(t *testing.T) {
	db := reportDB(t)
	keepsMeaning(t, db, "SELECT d.uid FROM (SELECT uid FROM airlines) AS d", 3)
	keepsMeaning(t, db, "SELECT d.uid FROM ((SELECT uid FROM airlines)) AS d", 3)
	keepsMeaning(t, db, "SELECT d.uid FROM ((SELECT uid FROM airlines) AS d JOIN events)", 9)
	// SQLite's set operators have one precedence: (1 UNION 2) INTERSECT 2, not 1 UNION (2 INTERSECT 2).
	n, _ := keepsMeaning(t, db, "SELECT 1 UNION SELECT 2 INTERSECT SELECT 2", 1)
	var operators []string
	for _, c := range n.Children[1:] {
		operators = append(operators, c.Value)
	}
	if !slices.Equal(operators, []string{"UNION", "INTERSECT"}) {
		t.Errorf("operators %v", operators)
	}
}

func TestReport53_QuotesInJSONPath(t *testing.T) {
	n, _ := keepsMeaning(t, reportDB(t), `SELECT doc -> '$."a b"', doc ->> '$."a b"' FROM events WHERE json_extract(doc, '$."a b"') = 1`, 1)
	if got := Render(n); !strings.Contains(got, `doc -> '$."a b"'`) || strings.Contains(got, "_UTF8") {
		t.Errorf("prints as %s", got)
	}
}

func TestReport54_DoubleEqualsAndSubqueryOnTheRight(t *testing.T) {
	db := reportDB(t)
	n, _ := keepsMeaning(t, db, "SELECT uid FROM airlines WHERE uid == (SELECT min(uid) FROM airlines)", 1)
	if find(n, Compare, "=") == nil {
		t.Error("== is no comparison")
	}
	keepsMeaning(t, db, "SELECT uid FROM airlines WHERE (SELECT 2) = uid AND uid <> (SELECT 1)", 1)
}

func TestReport55_SplittingAndGrouping(t *testing.T) {
	for text, want := range map[string][]string{
		"SELECT ';' AS a, \"x;y\" FROM t -- ; no end\nWHERE b = 'it''s; here' /* ; */ AND [c;d] = 1": {
			"SELECT ';' AS a, \"x;y\" ", "FROM t -- ; no end\n", "WHERE b = 'it''s; here' /* ; */ AND [c;d] = 1"},
		"SELECT CASE WHEN a = ';' THEN 'FROM' END, CASE b WHEN 1 THEN 2 END FROM t WHERE b BETWEEN 1 AND 2": {
			"SELECT CASE WHEN a = ';' THEN 'FROM' END, CASE b WHEN 1 THEN 2 END ", "FROM t ", "WHERE b BETWEEN 1 AND 2"},
		"SELECT a FROM t WHERE b = ';' ; SELECT c FROM u":                  {"SELECT a ", "FROM t ", "WHERE b = ';' ; "},
		`SELECT "\" FROM t; SELECT "\" FROM u`:                             {`SELECT "\" `, "FROM t; "}, // a backslash escapes nothing
		"WITH x AS (SELECT 1; ) SELECT 2":                                  {"WITH x AS (SELECT 1; "},   // no statement, but cut at its semicolon
		"SELECT `select`, [from], \"order by\" FROM `group by` LIMIT 1;  ": {"SELECT `select`, [from], \"order by\" ", "FROM `group by` ", "LIMIT 1;  "},
	} {
		checkPartition(t, text)
		var got []string
		for _, u := range Clauses(text) {
			got = append(got, text[u.Start:u.End])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\n\tis cut into %q, want %q", text, got, want)
		}
	}
	if _, err := Parse("SELECT a FROM t WHERE b = ';' ; SELECT c FROM u"); err == nil {
		t.Error("two statements are parsed as one")
	}
	for text, want := range map[string]string{
		"SELECT a FROM t WHERE a BETWEEN 1 AND 2 AND b OR c":                  "select[projection[item[a]] from[t] where[or[and[BETWEEN[a 1 2] b] c]]]",
		"SELECT CASE WHEN a THEN 1 ELSE 0 END AS x, CASE b WHEN 1 THEN 2 END": "select[projection[item[case[when[a 1] else[0]] x] item[case[b when[1 2]]]]]",
		"SELECT a FROM t ORDER BY CASE WHEN b THEN c END DESC, d LIMIT 1":     "select[projection[item[a]] from[t] order-by[DESC[case[when[b c]]] ASC[d]] limit[1]]",
	} {
		if got := shape(mustParse(t, text)); got != want {
			t.Errorf("%s\n\tis grouped as %s, want %s", text, got, want)
		}
	}
}

func TestReport56_DoubleQuotedStringsAreOn(t *testing.T) {
	db := reportDB(t)
	n, scopes := keepsMeaning(t, db, `SELECT "a string", "UID" FROM airlines WHERE Country = "USA"`, 1)
	for name, want := range map[string]Meaning{"a string": MeansString, "USA": MeansString, "UID": MeansColumn} {
		if b := scopes.Binding(find(n, Column, name)); b.Meaning != want {
			t.Errorf("%q means %v, want %v", name, b.Meaning, want)
		}
	}
	want, err := rows(db, "SELECT 'a string', 1")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := rows(db, Render(n)); err != nil || !slices.Equal(got, want) {
		t.Errorf("prints as %s: %q, %v; want %q", Render(n), got, err, want)
	}
}
