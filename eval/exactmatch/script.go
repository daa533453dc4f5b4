package exactmatch

import "fmt"

// Script is one of the official scripts. They differ in little, but they differ.
type Script string

const (
	// First is Spider's evaluation.py before October 2018, which made Spider's own
	// example of a result.
	First Script = "first"
	// Spider is the evaluation.py of taoyds/spider since.
	Spider Script = "spider"
	// TestSuite is the evaluation.py of taoyds/test-suite-sql-eval.
	TestSuite Script = "test-suite"
)

// ParseScript reads a script's name.
func ParseScript(name string) (Script, error) {
	switch s := Script(name); s {
	case First, Spider, TestSuite:
		return s, nil
	}
	return "", fmt.Errorf("script %q: want spider, test-suite or first", name)
}

// Quirks are what the script overlooks.
func (s Script) Quirks() Quirks {
	quirks := Quirks{ValuesDropped, DistinctDropped, ForeignKeysMerged, LimitValueDropped, OneDirection, JoinConditionsIgnored, AndOrAsSet}
	switch s {
	case First:
		return append(quirks, SingleTableUnchecked)
	case TestSuite:
		return append(quirks, NestedLimitDropped)
	}
	return quirks
}

// limitIsNumber reports whether the script reads only a whole number behind LIMIT.
func (s Script) limitIsNumber() bool { return s != TestSuite }
