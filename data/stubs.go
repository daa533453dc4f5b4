package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"

	"caper/sqlexec"
)

var errStub = errors.New("data: not built yet")

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Extra holds a line's unknown fields.
type Extra map[string]json.RawMessage

// Question is one question of a benchmark's split.
type Question struct {
	Dataset                                           string
	ID                                                QuestionID
	DBID, Question, Evidence, Gold, Difficulty, Split string
}

// Benchmark is an open benchmark folder.
type Benchmark struct {
	Name, Layout, Dir string
}

func OpenBenchmark(dir, format string) (*Benchmark, error)           { return nil, errStub }
func (b *Benchmark) Rule() sqlexec.Rule                              { return sqlexec.TestSuite }
func (b *Benchmark) Questions(split string) ([]Question, error)      { return nil, errStub }
func (b *Benchmark) DatabasePath(dbID string) (string, error)        { return "", errStub }
func (b *Benchmark) Database(dbID string) (*sqlexec.Database, error) { return nil, errStub }
func (b *Benchmark) Prompt(q Question) (string, error)               { return "", errStub }
func (b *Benchmark) Close() error                                    { return nil }

// ReadRollouts streams the candidates in the file at path; it stops after the first error.
func ReadRollouts(path string, b *Benchmark, split string) iter.Seq2[Rollout, error] { return nil }

// WriteRollouts writes JSON Lines to path, whole or not at all.
func WriteRollouts(path string, rollouts iter.Seq[Rollout]) error { return errStub }

// ReadTuples streams the tuples in the file at path; it stops after the first error.
func ReadTuples(path string) iter.Seq2[Tuple, error] { return nil }

// WriteTuples writes JSON Lines to path, whole or not at all.
func WriteTuples(path string, tuples iter.Seq[Tuple]) error { return errStub }

// Validate checks the byte invariants of the format.
func (t *Tuple) Validate() error { return errStub }

// ContentID is the hash of question, prefix, chosen and rejected.
func (t *Tuple) ContentID() string { return "" }

// File is written under a temporary name beside its own and takes its name on Commit.
type File struct{}

// Create starts to write the file at path.
func Create(path string) (*File, error)     { return nil, errStub }
func (f *File) Write(p []byte) (int, error) { return 0, io.ErrClosedPipe }
func (f *File) WriteLine(v any) error       { return errStub }
func (f *File) Commit() error               { return errStub }
func (f *File) Discard()                    {}
