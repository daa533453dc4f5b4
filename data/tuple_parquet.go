package data

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// tupleRow is a tuple as a row of a Parquet file: the columns are the fields of
// the JSON line under the same names. Only the id of a question, which may be a
// number or a text there, has to be of one type here: it is text.
type tupleRow struct {
	ID          string  `parquet:"id"`
	Dataset     string  `parquet:"dataset,dict"`
	QuestionID  string  `parquet:"question_id,dict"`
	DBID        string  `parquet:"db_id,dict"`
	Question    string  `parquet:"question,dict"`
	Evidence    string  `parquet:"evidence,dict"`
	Split       string  `parquet:"split,dict"`
	Prompt      string  `parquet:"prompt,dict"`
	Prefix      string  `parquet:"prefix"`
	Chosen      string  `parquet:"chosen"`
	Rejected    string  `parquet:"rejected"`
	SQLChosen   string  `parquet:"sql_chosen"`
	SQLRejected string  `parquet:"sql_rejected"`
	Clause      string  `parquet:"clause,dict"`
	ClauseIndex int64   `parquet:"clause_index"`
	ClauseCount int64   `parquet:"clause_count"`
	Source      string  `parquet:"source,dict"`
	Operator    string  `parquet:"operator,dict"`
	Root        rootRow `parquet:"root"`
	Reward      float64 `parquet:"reward"`
	Margin      float64 `parquet:"margin"`
	EditCost    float64 `parquet:"edit_cost"`
	RootClause  bool    `parquet:"root_clause"`
	Cut         bool    `parquet:"cut"`
}

type rootRow struct {
	Start int64  `parquet:"start"`
	End   int64  `parquet:"end"`
	Kind  string `parquet:"kind,dict"`
}

// rowOf is the tuple as a row. A field that the format does not know has no column.
func rowOf(t Tuple) (tupleRow, error) {
	if len(t.Extra) > 0 {
		return tupleRow{}, fmt.Errorf("%s: a field without a column in Parquet: write JSON Lines", slices.Min(slices.Collect(maps.Keys(t.Extra))))
	}
	return tupleRow{
		ID: t.ID, Dataset: t.Dataset, QuestionID: t.QuestionID.column(), DBID: t.DBID, Question: t.Question, Evidence: t.Evidence,
		Split: t.Split, Prompt: t.Prompt, Prefix: t.Prefix, Chosen: t.Chosen, Rejected: t.Rejected,
		SQLChosen: t.SQLChosen, SQLRejected: t.SQLRejected,
		Clause: t.Clause, ClauseIndex: int64(t.ClauseIndex), ClauseCount: int64(t.ClauseCount),
		Source: t.Source, Operator: t.Operator,
		Root:   rootRow{int64(t.Root.Start), int64(t.Root.End), t.Root.Kind},
		Reward: t.Reward, Margin: t.Margin, EditCost: t.EditCost, RootClause: t.RootClause, Cut: t.Cut,
	}, nil
}

// tuple is the row as a valid tuple; an error names the field.
func (r tupleRow) tuple() (Tuple, error) {
	id, err := columnID(r.QuestionID)
	if err != nil {
		return Tuple{}, fmt.Errorf("question_id: %w", err)
	}
	t := Tuple{
		ID: r.ID, Dataset: r.Dataset, QuestionID: id, DBID: r.DBID, Question: r.Question, Evidence: r.Evidence,
		Split: r.Split, Prompt: r.Prompt, Prefix: r.Prefix, Chosen: r.Chosen, Rejected: r.Rejected,
		SQLChosen: r.SQLChosen, SQLRejected: r.SQLRejected,
		Clause: r.Clause, ClauseIndex: int(r.ClauseIndex), ClauseCount: int(r.ClauseCount),
		Source: r.Source, Operator: r.Operator,
		Root:   Root{int(r.Root.Start), int(r.Root.End), r.Root.Kind},
		Reward: r.Reward, Margin: r.Margin, EditCost: r.EditCost, RootClause: r.RootClause, Cut: r.Cut,
	}
	return t, t.Validate()
}

// column is the id as text that columnID reads back: as it is, or as JSON where it
// would be taken for a number.
func (q QuestionID) column() string {
	if q.quoted && (q.text == "" || strings.ContainsRune(`"-0123456789`, rune(q.text[0]))) {
		text, _ := json.Marshal(q.text) // a string always marshals
		return string(text)
	}
	return q.text
}

func columnID(text string) (QuestionID, error) {
	if text == "" || !strings.ContainsRune(`"-0123456789`, rune(text[0])) {
		return QuestionID{text: text, quoted: text != ""}, nil
	}
	var id QuestionID
	return id, json.Unmarshal([]byte(text), &id)
}

// isParquet tells a file's format by its first bytes. What cannot be read is left
// to the reader of JSON Lines to complain about.
func isParquet(path string) bool {
	const magic = "PAR1"
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(magic))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == magic
}

// readParquetTuples streams a Parquet file of valid tuples. It stops after the
// first error, which names the row, from 1, and the field.
func readParquetTuples(path string) iter.Seq2[Tuple, error] {
	return func(yield func(Tuple, error) bool) {
		rows, err := openRows(path)
		if err != nil {
			yield(Tuple{}, fmt.Errorf("%s: %w", path, err))
			return
		}
		defer rows.close()
		for number := 1; ; {
			batch, err := rows.next()
			for _, row := range batch {
				t, err := row.tuple()
				if err != nil {
					yield(Tuple{}, fmt.Errorf("%s: row %d: %w", path, number, err))
					return
				}
				if !yield(t, nil) {
					return
				}
				number++
			}
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(Tuple{}, fmt.Errorf("%s: row %d: %w", path, number, err))
				return
			}
		}
	}
}

// tupleRows reads the rows of a Parquet file, a batch at a time.
type tupleRows struct {
	f      *os.File
	reader *parquet.GenericReader[tupleRow]
	batch  [256]tupleRow
}

func openRows(path string) (rows *tupleRows, err error) {
	defer brokenParquet(&err)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	rows = &tupleRows{f: f}
	defer func() {
		if err != nil || rows.reader == nil {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	if err := checkColumns(parquet.SchemaOf(tupleRow{}).Fields(), file.Schema().Fields(), ""); err != nil {
		return nil, err
	}
	rows.reader = parquet.NewGenericReader[tupleRow](file)
	return rows, nil
}

// checkColumns names a column that is missing or of another type. Other programs
// may have written it as nullable or with another encoding, and more columns.
func checkColumns(want, have []parquet.Field, group string) error {
	for _, w := range want {
		name := group + w.Name()
		i := slices.IndexFunc(have, func(h parquet.Field) bool { return h.Name() == w.Name() })
		switch {
		case i < 0:
			return fmt.Errorf("column %s is missing", name)
		case w.Leaf() != have[i].Leaf() || have[i].Repeated():
			return fmt.Errorf("column %s: want %v, have %v", name, w.Type(), have[i].Type())
		case !w.Leaf():
			if err := checkColumns(w.Fields(), have[i].Fields(), name+"."); err != nil {
				return err
			}
		case w.Type().Kind() != have[i].Type().Kind():
			return fmt.Errorf("column %s: want %v, have %v", name, w.Type(), have[i].Type())
		}
	}
	return nil
}

func (r *tupleRows) next() (batch []tupleRow, err error) {
	defer brokenParquet(&err)
	n, err := r.reader.Read(r.batch[:])
	return r.batch[:n], err
}

func (r *tupleRows) close() {
	var err error
	defer brokenParquet(&err)
	defer r.f.Close()
	r.reader.Close()
}

// brokenParquet turns a panic of the library over a broken file into an error. Only
// calls of the library are guarded, never the body of a reader's loop.
func brokenParquet(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("broken Parquet: %v", r)
	}
}

// rowsPerGroup bounds the memory of writing and reading.
const rowsPerGroup = 10_000

// writeParquetTuples writes a Parquet file as a stream.
func writeParquetTuples(out *File, tuples iter.Seq2[Tuple, error]) error {
	w := parquet.NewGenericWriter[tupleRow](out, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rowsPerGroup))
	for t, err := range tuples {
		if err != nil {
			return err
		}
		row, err := rowOf(t)
		if err != nil {
			return fmt.Errorf("tuple %s: %w", t.ID, err)
		}
		if _, err := w.Write([]tupleRow{row}); err != nil {
			return err
		}
	}
	return w.Close()
}
