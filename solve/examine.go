package solve

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"caper/sql"
	"caper/sqlexec"
)

// State is what a candidate came to when it ran (sirius.md 2.4).
type State string

const (
	Clean State = "clean"
	// Empty: no rows. Degenerate: rows, but every cell NULL, or one row of zeros.
	Empty      State = "empty"
	Degenerate State = "degenerate"
	Failed     State = "error"
	TimedOut   State = "timeout"
	// Rejected: a filter found before execution that it cannot run.
	Rejected State = "rejected"
	// NotRun: there is no database to run it on.
	NotRun State = "not_run"
)

// ran reports that there is a result.
func (s State) ran() bool { return s == Clean || s == Empty || s == Degenerate }

// maxRows is how much of a result is looked at: two that agree in so many rows are
// one answer.
const maxRows = 10_000

// Examined is a candidate with what is known of it.
type Examined struct {
	Candidate
	State State
	// Message is the engine's, where the query failed.
	Message string
	Result  *sqlexec.Result // where it ran

	tree   *sql.Node // nil where the text does not parse
	scopes *sql.Scopes
	// statement is the canonical form: equal ones are one query in other words.
	statement string
	shape     string
}

// Examiner runs candidates. It is safe for concurrent use.
type Examiner struct {
	databases Databases
	cache     *sqlexec.Cache
}

// NewExaminer returns one whose cache holds results of at most cacheBytes.
func NewExaminer(databases Databases, cacheBytes int) *Examiner {
	return &Examiner{databases: databases, cache: sqlexec.NewCache(cacheBytes)}
}

// Examine runs the candidates of a pool and reads their structure. A database that is
// not there leaves them NotRun: what their texts tell remains. Any other error is of
// the machine or of ctx, never of a candidate.
func (e *Examiner) Examine(ctx context.Context, pool Pool) ([]Examined, Cost, error) {
	began := time.Now()
	var cost Cost
	db, schema, err := e.open(pool.Question.DBID)
	if err != nil {
		return nil, cost, err
	}
	examined := make([]Examined, len(pool.Candidates))
	texts := make([]string, len(pool.Candidates))
	for i, c := range pool.Candidates {
		texts[i] = c.SQL
		examined[i] = Examined{Candidate: c, State: NotRun, Message: "there is no database"}
		examined[i].read(schema)
	}
	if db != nil {
		e.cache.Prefetch(ctx, db, texts)
		for i := range examined {
			if err := e.run(ctx, db, &examined[i]); err != nil {
				return nil, cost, err
			}
			cost.Executions++
		}
	}
	cost.since(began)
	return examined, cost, nil
}

// open returns no database where there is none, and no schema where nothing tells it.
func (e *Examiner) open(dbID string) (*sqlexec.Database, *sql.Schema, error) {
	schema, schemaErr := e.databases.Schema(dbID)
	db, err := e.databases.Database(dbID)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, schema, nil
	case err != nil:
		return nil, nil, err
	case schemaErr != nil:
		return nil, nil, schemaErr
	}
	limits := db.Limits()
	limits.Rows = min(limits.Rows, maxRows)
	db, err = db.Within(limits)
	return db, schema, err
}

// read parses the text and finds what its names mean.
func (x *Examined) read(schema *sql.Schema) {
	x.statement, x.shape = x.SQL, "text:"+x.SQL
	tree, err := sql.Parse(x.SQL)
	if err != nil {
		return
	}
	x.tree, x.scopes = tree, sql.Resolve(tree, schema)
	canonical := sql.CanonicalResolved(tree, x.scopes)
	x.statement = sql.Render(canonical)
	x.shape = shapeOf(x.tree, x.scopes, canonical)
}

// run runs one candidate. Its error is not the candidate's.
func (e *Examiner) run(ctx context.Context, db *sqlexec.Database, x *Examined) error {
	result, err := e.cache.Query(ctx, db, x.SQL)
	var failure *sqlexec.Error
	switch {
	case err == nil:
		x.Result, x.Message = result, ""
		x.State = x.stateOf(result)
	case !errors.As(err, &failure):
		return err
	case failure.Failure == sqlexec.Timeout:
		x.State, x.Message = TimedOut, failure.Message
	default:
		x.State, x.Message = Failed, failure.Message
	}
	return nil
}

// stateOf tells a result that says something from one that does not.
func (x *Examined) stateOf(r *sqlexec.Result) State {
	switch {
	case len(r.Rows) == 0:
		return Empty
	case allNull(r) && !x.projectsNullable(), len(r.Rows) == 1 && allZero(r.Rows[0]):
		return Degenerate
	}
	return Clean
}

func allNull(r *sqlexec.Result) bool {
	for _, row := range r.Rows {
		for _, v := range row {
			if v != nil {
				return false
			}
		}
	}
	return true
}

func allZero(row []sqlexec.Value) bool {
	for _, v := range row {
		if !sqlexec.Equal(v, int64(0)) {
			return false
		}
	}
	return true
}

// projectsNullable reports that the query selects columns of the nullable side of an
// outer join, where NULL in every row says "none has a partner".
func (x *Examined) projectsNullable() bool {
	if x.tree == nil || x.tree.Kind != sql.Select {
		return false
	}
	scope := x.scopes.Scope(x.tree)
	nullable := false
	for _, item := range x.tree.Child(sql.Projection).Children {
		sql.Walk(item, func(n *sql.Node) bool {
			if b := x.scopes.Binding(n); b.Meaning == sql.MeansColumn && b.Level == 0 && isNullable(scope, b.Source) {
				nullable = true
			}
			return !n.IsBlock()
		})
	}
	return nullable
}
