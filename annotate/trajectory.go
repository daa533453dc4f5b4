package annotate

import (
	"context"
	"iter"
	"maps"
	"regexp"
	"strings"
	"unicode/utf8"

	"caper/data"
	"caper/sql"
	"caper/sqlexec"
)

// State is how far from correct the query in hand is.
type State string

// The states. A turn without a query leaves the state as it was.
const (
	NoQueryYet State = "none"     // no turn up to here held a query
	Solved     State = "correct"  // its result is gold's
	Mendable   State = "mendable" // wrong, but repairing one clause makes it correct
	Lost       State = "lost"     // wrong, and no repair of one clause does
)

// TurnKind tells the turns that answer from the others.
type TurnKind string

// Kinds of turns.
const (
	QueryTurn  TurnKind = "query"
	LookupTurn TurnKind = "lookup" // asks about the schema: SHOW, DESC, information_schema
	TextTurn   TurnKind = "text"   // no SQL
)

// Turn is one action of a trajectory, judged by executing it.
type Turn struct {
	Kind TurnKind `json:"kind"`
	// State is that of the last query up to this turn.
	State State `json:"state"`
	// Failure is why this turn's query fails: a sqlexec.Failure, or no_parse.
	Failure string `json:"failure,omitempty"`
	// Mends are the repairs of one clause each that make this turn's query correct.
	Mends []Mend `json:"mends,omitempty"`
}

// Mend is a repair of one clause.
type Mend struct {
	Clause sql.ClauseKind `json:"clause"`
	SQL    string         `json:"sql"` // the query repaired
}

// TrajectoryLabel says how a trajectory went.
type TrajectoryLabel struct {
	data.Trajectory
	// Reason says why it was not judged, "" where it was: gold fails.
	Reason Reason
	// Turns has one for each action, none where there is a reason.
	Turns []Turn
	// Outcome is the state after the last turn.
	Outcome State
	// LostTurn is the first turn, counted from 0, from which on no query was correct
	// or mendable: the point of no return of a trajectory that ends lost; -1 for
	// others.
	LostTurn int
}

// Line is the trajectory with the label among its fields.
func (l TrajectoryLabel) Line() data.Trajectory {
	t := l.Trajectory
	t.Extra = maps.Clone(t.Extra)
	if t.Extra == nil {
		t.Extra = data.Extra{}
	}
	fields := map[string]any{"turns": l.Turns, "outcome": l.Outcome, "lost_turn": nil}
	if l.LostTurn >= 0 {
		fields["lost_turn"] = l.LostTurn
	}
	if l.Reason != "" {
		fields = map[string]any{"reason": l.Reason}
	}
	for name, value := range fields {
		t.Extra[name], _ = data.Marshal(value) // strings and numbers always marshal
	}
	return t
}

// TrajectorySummary counts what LabelTrajectories did.
type TrajectorySummary struct {
	Trajectories int           `json:"trajectories"`
	Outcomes     map[State]int `json:"outcomes"`
	// Reasons counts those that were not judged.
	Reasons map[Reason]int   `json:"reasons"`
	Kinds   map[TurnKind]int `json:"turns"`
	// LostTurns counts the trajectories that end lost by the turn from which on they
	// are, LostAtOnce those among them in which no query was ever correct or mendable.
	LostTurns  map[int]int `json:"lost_turns"`
	LostAtOnce int         `json:"lost_at_once"`
	// Regained counts those in which a lost query was followed by one that is not.
	Regained int `json:"regained"`
	// Claimed counts the trajectories of which the file says whether they succeeded,
	// Refuted those of them where execution says otherwise.
	Claimed    int `json:"claimed"`
	Refuted    int `json:"refuted"`
	Executions int `json:"executions"`
}

// LabelTrajectories judges every turn of each trajectory by executing its query on
// the benchmark's database, whatever the file says of it, and hands the labels to
// emit in order. It stops at the first error: of the trajectories, of a database,
// of emit, or of ctx.
func LabelTrajectories(ctx context.Context, bench *data.Benchmark, trajectories iter.Seq2[data.Trajectory, error], o Options,
	emit func(TrajectoryLabel) error) (TrajectorySummary, error) {
	s := TrajectorySummary{
		Outcomes: make(map[State]int), Reasons: make(map[Reason]int), Kinds: make(map[TurnKind]int), LostTurns: make(map[int]int),
	}
	if err := o.check(); err != nil {
		return s, err
	}
	a := &annotator{Options: o, bench: bench, cache: sqlexec.NewCache(o.CacheBytes)}
	for t, err := range trajectories {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return s, err
		}
		label, runs, err := a.trajectory(ctx, t)
		if err != nil {
			return s, err
		}
		s.add(label)
		s.Executions += runs
		if err := emit(label); err != nil {
			return s, err
		}
	}
	return s, nil
}

// trajectory judges the turns of one trajectory.
func (a *annotator) trajectory(ctx context.Context, t data.Trajectory) (label TrajectoryLabel, runs int, err error) {
	label = TrajectoryLabel{Trajectory: t, Turns: []Turn{}, LostTurn: -1}
	e, schema, reason, err := a.against(ctx, t.DBID, t.Gold)
	if err != nil || reason != "" {
		label.Reason = reason
		return label, 0, err
	}
	gold, ok := parse(t.Gold, schema, Top)
	if !ok {
		label.Reason = GoldNoParse
		return label, e.runs, nil
	}
	state := NoQueryYet
	judged := make(map[string]Turn) // models repeat themselves
	for i, action := range t.Actions {
		turn, done := judged[action]
		if !done {
			if turn, err = a.turn(ctx, action, gold, e); err != nil {
				return label, e.runs, err
			}
			judged[action] = turn
		}
		if turn.Kind != QueryTurn {
			turn.State = state
		}
		switch {
		case turn.State != Lost:
			label.LostTurn = -1
		case state != Lost:
			label.LostTurn = i
		}
		state = turn.State
		label.Turns = append(label.Turns, turn)
	}
	label.Outcome = state
	return label, e.runs, nil
}

var (
	queryStart  = regexp.MustCompile(`(?i)^[\s(]*(SELECT|WITH|VALUES)\b`)
	lookupStart = regexp.MustCompile(`(?i)^\s*(SHOW|DESC|DESCRIBE|EXPLAIN|PRAGMA|USE)\b`)
)

// turn judges one action.
func (a *annotator) turn(ctx context.Context, action string, gold *statement, e *executor) (Turn, error) {
	switch {
	case lookupStart.MatchString(action):
		return Turn{Kind: LookupTurn}, nil
	case !queryStart.MatchString(action):
		return Turn{Kind: TextTurn}, nil
	case !utf8.ValidString(action):
		return Turn{Kind: QueryTurn, State: Lost, Failure: string(NoParse)}, nil
	}
	own, ok := a.readable(action, gold.schema, &outcome{})
	if !ok {
		return Turn{Kind: QueryTurn, State: Lost, Failure: string(NoParse)}, nil
	}
	if readsCatalogue(own.tree) {
		return Turn{Kind: LookupTurn}, nil
	}
	turn := Turn{Kind: QueryTurn, State: Solved}
	q, err := e.execute(ctx, e.database, own.text)
	switch cause, failed := failure(err); {
	case failed:
		turn.Failure = string(cause)
	case err != nil || e.isAsGold(q):
		return turn, err
	}
	working, err := singleRepairs(ctx, newRepair(own, gold), e)
	if err != nil {
		return turn, err
	}
	turn.State = Lost
	for _, r := range working {
		turn.State = Mendable
		turn.Mends = append(turn.Mends, Mend{r.clause().kind, r.text})
	}
	return turn, nil
}

// readsCatalogue reports that a query reads the database's description of itself.
func readsCatalogue(tree *sql.Node) bool {
	found := false
	sql.Walk(tree, func(n *sql.Node) bool {
		found = found || n.Kind == sql.Table && (sameName(n.Qualifier, "information_schema") ||
			strings.HasPrefix(strings.ToLower(n.Value), "sqlite_"))
		return !found
	})
	return found
}

// add counts a label.
func (s *TrajectorySummary) add(l TrajectoryLabel) {
	s.Trajectories++
	if l.Reason != "" {
		s.Reasons[l.Reason]++
		return
	}
	s.Outcomes[l.Outcome]++
	wasLost, isRegained, isHopeful := false, false, false
	for _, t := range l.Turns {
		s.Kinds[t.Kind]++
		isHopeful = isHopeful || t.State == Solved || t.State == Mendable
		isRegained = isRegained || wasLost && t.State != Lost
		wasLost = t.State == Lost
	}
	if isRegained {
		s.Regained++
	}
	if l.LostTurn >= 0 {
		s.LostTurns[l.LostTurn]++
		if !isHopeful {
			s.LostAtOnce++
		}
	}
	if l.Success != nil {
		s.Claimed++
		if *l.Success != (l.Outcome == Solved) {
			s.Refuted++
		}
	}
}
