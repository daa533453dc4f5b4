package report

import (
	"fmt"

	"caper/eval"
)

// Verification is how well ways to choose among samples did, for one policy on one test.
type Verification struct {
	// Test is the questions', Name the policy's.
	Test, Name string
	eval.Verification
}

// verified is a test with a row for each policy.
type verified struct {
	Test  string
	Table grid
}

// verifiedTests makes a table of each test, in the order of their first results.
func verifiedTests(all []Verification) []verified {
	var tests []verified
	for _, v := range all {
		i := 0
		for i < len(tests) && tests[i].Test != v.Test {
			i++
		}
		if i == len(tests) {
			tests = append(tests, verified{v.Test, grid{Columns: []string{"questions", "first", "majority", "prm", "prm + vote", "oracle"}}})
		}
		t := &tests[i].Table
		t.Rows = append(t.Rows, gridRow{v.Name, []string{Thousands(v.Questions), chosen(v.First), shareOf(v.Majority), chosen(v.PRM), chosen(v.PRMVote), shareOf(v.Oracle)}})
	}
	return tests
}

// shareOf is the accuracy of a way to choose.
func shareOf(c eval.Choice) string {
	return fmt.Sprintf("%s (%s)", digits(c.Accuracy), span(c.Interval))
}

// chosen is its accuracy and the test against the majority.
func chosen(c eval.Choice) string {
	return fmt.Sprintf("%s; %d : %d, p %.2g", shareOf(c), c.OnlyThis, c.OnlyVote, c.P)
}
