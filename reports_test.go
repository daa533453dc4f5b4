package caper

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// publicReports are faults that users of other programs reported in public and that
// must not happen here. Each names the test that would see it, or says why it cannot
// occur. The numbers in names such as TestReport43 are those of this list.
var publicReports = []struct {
	number  int
	report  string
	symptom string
	test    string // the start of a test's name
	reason  string // where there is no test
}{
	// Evaluators, Spider.
	{1, "taoyds/spider #51", "gold against itself scores 0.998 (undecodable text in two queries)", "TestReport01", ""},
	{2, "taoyds/spider #52", "the evaluator stops on gold of train", "TestReport02", ""},
	{3, "taoyds/spider #37", "an assertion fails when the evaluation type is missing", "TestReport03", ""},
	{4, "taoyds/spider #102", "two databases lack schema.sql, so a loader saw 18 of 20", "TestReport04", ""},
	{5, "taoyds/test-suite-sql-eval #7", "exact match takes a condition on another column, merged by a foreign key", "TestReport05", ""},
	{6, "taoyds/test-suite-sql-eval #16", "the two official scripts give different numbers", "TestReport06", ""},
	{7, "taoyds/test-suite-sql-eval #21", "\"value\" replaced by 1 breaks columns of that name", "TestReport07", ""},
	{8, "taoyds/test-suite-sql-eval #26", "a run gets stuck at times", "TestReport08", ""},
	{9, "awslabs/unified-text2sql-benchmark #5", "a quoted table name gives a KeyError", "TestReport09", ""},
	{10, "bigbigwatermalon/C3SQL #6, #1", "the same file scores 0.611 or 0.819 by script", "TestReport10", ""},
	{11, "BeachWang/DAIL-SQL #6", "76.2 for 83.5: the copy of a database was wrong", "",
		"a copy with other rows looks like any database; a missing or damaged one is an error"},
	{12, "BeachWang/DAIL-SQL #48", "chat text around SQL makes the parser reject half", "TestReport12", ""},
	{13, "awslabs/gap-text2sql #7", "a result field with three states (true, 0, false)", "TestReport13", ""},
	{14, "microsoft/rat-sql #58", "execution match cannot do several columns or nesting", "TestReport14", ""},
	{15, "scitix/sieval PR #124", "the old parser takes all gold but half of what models write", "TestReport15", ""},
	{16, "NVIDIA-NeMo/Gym PR #3468", "mismatch, timeout and gold timeout reported as one error", "TestReport16", ""},

	// Evaluators and gold, BIRD and others.
	{17, "bird-bench/mini_dev #5", "Soft-F1 of two empty results is 0", "TestReport17", ""},
	{18, "bird-bench/mini_dev #15", "Soft-F1 loses the order of rows", "TestReport18", ""},
	{19, "bird-bench/mini_dev #11", "VES cannot be reproduced on another machine", "",
		"true of any score made of times: gold and prediction alternate and the median is given too"},
	{20, "bird-bench/mini_dev #41", "predictions paired by position: sorted keys score 0.0013", "TestReport20", ""},
	{21, "bird-bench/mini_dev #43", "gold that takes longer than 30 s", "TestReport21", ""},
	{22, "bird-bench/mini_dev #45", "ten faults of gold or evidence", "", goldIsTakenAsItIs},
	{23, "bird-bench/mini_dev #49", "gold cut at a tie, sorted with NULL first or numbers as text", "", goldIsTakenAsItIs},
	{24, "bird-bench/mini_dev #35", "gold of another dialect", "TestReport24And26", ""},
	{25, "AlibabaResearch/DAMO-ConvAI #39", "ids that occur twice", "TestReport25", ""},
	{26, "AlibabaResearch/DAMO-ConvAI #65", "gold that cannot run", "TestReport24And26", ""},
	{27, "AlibabaResearch/DAMO-ConvAI #227", "gold joins by the wrong key", "", goldIsTakenAsItIs},
	{28, "AlibabaResearch/DAMO-ConvAI #177", "the set rule hides faults of DISTINCT and order", "TestReport28And29", ""},
	{29, "AlibabaResearch/DAMO-ConvAI PR #213", "rows to be compared sorted, with duplicates", "TestReport28And29", ""},
	{30, "AlibabaResearch/DAMO-ConvAI #93", "encoding not stated; a list where a map is expected", "TestReport20And30And31", ""},
	{31, "AlibabaResearch/DAMO-ConvAI #201", "47 instead of 69 from how output is cut", "TestReport20And30And31", ""},
	{32, "YangHaolin0526/MARS-SQL #4", "another order of columns counted right or wrong", "TestReport32", ""},
	{33, "bird-bench/BIRD-Interact #11", "removing DISTINCT breaks gold", "TestReport33", ""},
	{34, "xlang-ai/Spider2 #200, #226", "columns compared alone accept scrambled rows", "TestReport34", ""},
	{35, "xlang-ai/Spider2 #225", "a tolerance defeated by sorting numbers as text", "TestReport35", ""},
	{36, "xlang-ai/Spider2 #25", "a strict tolerance refuses a more precise number", "TestReport36", ""},
	{37, "xlang-ai/Spider2 #44", "column indexes out of range", "TestReport37", ""},
	{38, "xlang-ai/Spider2 #154", "gold SQL does not give the gold result", "", goldIsTakenAsItIs},

	// Voting.
	{39, "bigbigwatermalon/C3SQL #12", "the first valid candidate, or the most consistent one?", "TestReport39", ""},
	{40, "openai/evals PR #1758", "a crash when no candidate can be parsed", "TestReport40", ""},
	{41, "RUCKBReasoning/OmniSQL #11", "many synthetic queries return no row", "TestReport41", ""},

	// Parsing SQLite.
	{42, "tobymao/sqlglot #1867, #5383", "text in double quotes that is no column is a string", "TestReport42", ""},
	{43, "tobymao/sqlglot #3461", "Airline = \"JetBlue Airways\" read as a column", "TestReport43", ""},
	{44, "tobymao/sqlglot #3990", "CAST(x AS DATE) rewritten to DATE(x)", "TestReport44", ""},
	{45, "tobymao/sqlglot #2259", "COLLATE NOCASE taken for a column", "TestReport45", ""},
	{46, "tobymao/sqlglot #1838", "a column named END, a name with a dash, IS NOT ''", "TestReport46", ""},
	{47, "tobymao/sqlglot #2760", "a quoted column of mixed case not found", "TestReport47", ""},
	{48, "tobymao/sqlglot #4296", "an ambiguous column reported as unknown", "TestReport48", ""},
	{49, "tobymao/sqlglot #5595", "ORDER BY names that are outputs stay unqualified", "TestReport49", ""},
	{50, "rqlite/sql #8, #92", "NOT IN (SELECT ...), a scalar sub-query in CASE, NOT IN table", "TestReport50", ""},
	{51, "xwb1989/sqlparser #41", "a grammar of MySQL only", "TestReport51", ""},
	{52, "pingcap/parser #1127, PR #916", "a parenthesised derived table refused; precedence of set operators", "TestReport52", ""},
	{53, "pingcap/tidb #14457, #37175", "double quotes in a JSON path refused; prefixes printed before strings", "TestReport53", ""},
	{54, "taozhi8833998/node-sql-parser #2024", "== and a sub-query on the right of = refused", "TestReport54", ""},
	{55, "andialbrecht/sqlparse #60, #353, #753", "faults of grouping and splitting", "TestReport55", ""},
	{56, "jpwhite3/northwind-SQLite3 PR #20", "strings in double quotes refused where the option is off", "TestReport56", ""},

	// SQLite from Go, rewards, training.
	{57, "mattn/go-sqlite3 #681", "an interrupt for one query stops another", "TestInterruptHitsOnlyItsQuery", ""},
	{58, "mattn/go-sqlite3 #863", "a deadline ignored while the database is busy", "TestBusyDatabase", ""},
	{59, "tailscale/sqlite PR #85, #86", "the cancel of a finished query races with its result", "TestCancelOfAFinishedQuery", ""},
	{60, "NVIDIA-NeMo/RL #1518", "advantages of a million from rewards [1,0,0,0]", "TestReport60", ""},
	{61, "areal-project/AReaL #1419", "a partial group shifts all later ones", "TestReport61", ""},
	{62, "huggingface/trl PR #5773, #5775", "missing rewards poison a group's mean", "TestReport62", ""},
	{63, "huggingface/trl PR #6365", "groups of equal reward count in the loss's denominator", "TestReport63", ""},
	{64, "XU-YIJIE/grpo-flat #2", "advantages over the batch, not the group", "TestReport64", ""},
	{65, "axon-rl/gem PR #113", "advantages normalised twice", "TestReport65", ""},
	{66, "huggingface/trl PR #2127", "ignored labels of steps cast to true", "",
		"no labels are masked: a reward model's loss names the rows that it compares, a policy's those of its own tokens"},
	{67, "openai/prm800k #10", "several alternatives at one step", "TestPackedLossIsThatOfThePairs", ""},
	{68, "NovaSky-AI/SkyRL #757", "all rewards 0 because an answer tag is absent", "TestReport68", ""},
	{69, "verl-project/verl #2079", "rewards by database in a single thread", "TestReport69", ""},
}

const (
	goldIsTakenAsItIs = "gold that runs is taken as it is; only gold that does not run is told apart"
)

func TestPublicReports(t *testing.T) {
	names := testNames(t)
	for i, r := range publicReports {
		if r.number != i+1 {
			t.Fatalf("report %d stands at place %d", r.number, i+1)
		}
		if (r.test == "") == (r.reason == "") {
			t.Errorf("report %d needs a test or a reason, and one of them", r.number)
		}
		if r.test != "" && !strings.Contains(names, "\n"+r.test) {
			t.Errorf("report %d: there is no test %s", r.number, r.test)
		}
	}
	for _, m := range regexp.MustCompile(`\nTestReport(\d+)`).FindAllStringSubmatch(names, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil || n < 1 || n > len(publicReports) || publicReports[n-1].test == "" {
			t.Errorf("TestReport%s is not in the list", m[1])
		}
	}
}

// testNames lists all tests of the repository, one a line.
func testNames(t *testing.T) string {
	var names strings.Builder
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			fmt.Fprintf(&names, "\n%s", m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names.String()
}
