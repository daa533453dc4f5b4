// Package solve chooses one query for a question out of several candidates
// (SIRIUS-SQL, arXiv 2606.01246): filters before execution, repair by what went wrong,
// and a vote over results that a judge and the structure of queries complete.
//
// Plain data lies between the stages. A Pool (pool.go) holds a question's candidates.
// Examine runs them and says what each came to (examine.go). A Selector (select.go)
// groups equal results into classes, scores the classes by what their results share
// (consensus.go) and by a Judge (judge.go), and where that leaves no clear winner asks
// which query structure most generators agree on (shape.go). Gold has no part in any
// of it.
package solve

import (
	"time"

	"caper/model/remote"
	"caper/sql"
	"caper/sqlexec"
)

// Databases opens databases by name; data.Benchmark is one.
type Databases interface {
	Database(dbID string) (*sqlexec.Database, error)
	Schema(dbID string) (*sql.Schema, error)
}

// Cost is what an answer took.
type Cost struct {
	Executions int `json:"executions"`       // queries that ran, or were found in the cache
	Calls      int `json:"calls,omitempty"`  // of a model
	Failed     int `json:"failed,omitempty"` // calls that gave no answer, after all retries
	TokensIn   int `json:"tokens_in,omitempty"`
	TokensOut  int `json:"tokens_out,omitempty"`
	// Milliseconds is the wall time.
	Milliseconds float64 `json:"ms"`
}

// Add adds another cost.
func (c *Cost) Add(d Cost) {
	c.Executions += d.Executions
	c.Calls += d.Calls
	c.Failed += d.Failed
	c.TokensIn += d.TokensIn
	c.TokensOut += d.TokensOut
	c.Milliseconds += d.Milliseconds
}

// addCalls adds what calls of a model server took.
func (c *Cost) addCalls(d remote.Cost) {
	c.Add(Cost{Calls: d.Calls, Failed: d.Failed, TokensIn: d.TokensIn, TokensOut: d.TokensOut, Milliseconds: milliseconds(d.Time)})
}

// since adds the wall time since began.
func (c *Cost) since(began time.Time) {
	c.Milliseconds += milliseconds(time.Since(began))
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
