package solve

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"caper/eval"
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
	TimedOut   State = "timeout" // it passed its limit of time or of memory
	// Rejected: a filter found before execution that it cannot run.
	Rejected State = "rejected"
	// NotRun: there is no database to run it on, or a damaged one.
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
	domains   domains
}

// NewExaminer returns one whose cache holds results of at most cacheBytes.
func NewExaminer(databases Databases, cacheBytes int) *Examiner {
	return &Examiner{databases: databases, cache: sqlexec.NewCache(cacheBytes)}
}

// Examine runs the candidates of a pool and reads their structure. A database that is
// not there, or damaged, leaves them NotRun: what their texts tell remains. Any other error is of
// the machine or of ctx, never of a candidate.
func (e *Examiner) Examine(ctx context.Context, pool Pool) ([]Examined, Cost, error) {
	began := time.Now()
	var cost Cost
	w, err := e.open(ctx, pool.Question.DBID)
	if err != nil {
		return nil, cost, err
	}
	examined := make([]Examined, len(pool.Candidates))
	for i, c := range pool.Candidates {
		examined[i] = w.read(c)
	}
	err = w.runAll(examined)
	cost.Executions = w.executions
	cost.since(began)
	return examined, cost, err
}

// workbench is a question's database, with the queries that were run on it.
type workbench struct {
	*Examiner
	ctx        context.Context
	db         *sqlexec.Database // nil where there is none that can be used
	absent     string            // why
	schema     *sql.Schema       // nil where nothing tells it
	executions int
	until      time.Time // when mending a candidate ends
}

// isLate reports that mending has taken as long as it may.
func (w *workbench) isLate() bool { return time.Now().After(w.until) }

// open opens no database where there is none or it is damaged, and has no schema where
// nothing tells it.
func (e *Examiner) open(ctx context.Context, dbID string) (*workbench, error) {
	w := &workbench{Examiner: e, ctx: ctx}
	var schemaErr, err error
	w.schema, schemaErr = e.databases.Schema(dbID)
	if w.db, err = e.databases.Database(dbID); err == nil {
		err = schemaErr
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), eval.IsDatabaseFault(err):
		w.db, w.absent = nil, err.Error()
		return w, nil
	case err != nil:
		return nil, err
	}
	limits := w.db.Limits()
	limits.Rows = min(limits.Rows, maxRows)
	w.db, err = w.db.Within(limits)
	return w, err
}

// read is a candidate that has not run yet: it parses the text and finds what its names
// mean.
func (w *workbench) read(c Candidate) Examined {
	x := Examined{Candidate: c, State: NotRun, Message: w.absent, statement: c.SQL, shape: "text:" + c.SQL}
	tree, err := sql.Parse(c.SQL)
	if err != nil {
		return x
	}
	x.tree, x.scopes = tree, sql.Resolve(tree, w.schema)
	canonical := sql.CanonicalResolved(tree, x.scopes)
	x.statement = sql.Render(canonical)
	x.shape = shapeOf(x.tree, x.scopes, canonical)
	return x
}

// runAll runs those that were not rejected, most of them in one round trip.
func (w *workbench) runAll(examined []Examined) error {
	if w.db == nil {
		return nil
	}
	var texts []string
	for _, x := range examined {
		if x.State == NotRun {
			texts = append(texts, x.SQL)
		}
	}
	w.cache.Prefetch(w.ctx, w.db, texts)
	for i := range examined {
		if examined[i].State != NotRun {
			continue
		}
		if err := w.run(&examined[i]); err != nil {
			return err
		}
	}
	return nil
}

// query runs a query of any kind.
func (w *workbench) query(text string) (*sqlexec.Result, error) {
	w.executions++
	return w.cache.Query(w.ctx, w.db, text)
}

// run runs one candidate. Its error is not the candidate's.
func (w *workbench) run(x *Examined) error {
	result, err := w.query(x.SQL)
	var failure *sqlexec.Error
	switch {
	case err == nil:
		x.Result, x.Message = result, ""
		x.State = x.stateOf(result)
	case eval.IsDatabaseFault(err):
		x.State, x.Message = NotRun, err.Error()
	case !errors.As(err, &failure):
		return err
	case failure.Failure == sqlexec.Timeout, failure.Failure == sqlexec.Memory:
		x.State, x.Message = TimedOut, failure.Message
	default:
		x.State, x.Message = Failed, failure.Message
	}
	return nil
}

// notFailure passes on an error that is neither a query's own nor its database's.
func notFailure(err error) error {
	if errors.As(err, new(*sqlexec.Error)) || eval.IsDatabaseFault(err) {
		return nil
	}
	return err
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
