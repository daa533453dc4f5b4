package eval

import (
	"sync"

	"caper/eval/exactmatch"
	"caper/sql"
)

// SchemaSource has the schema of a database, and what the benchmark's tables file says
// of it (nil: nothing); data.Benchmark is one.
type SchemaSource interface {
	Schema(dbID string) (*sql.Schema, error)
	Described(dbID string) (*sql.Schema, error)
}

// Schemas holds the schemas of databases as the exact-match parser sees them. It is
// safe for concurrent use.
type Schemas struct {
	source SchemaSource
	mu     sync.Mutex
	known  map[string]*exactmatch.Schema
}

// NewSchemas returns an empty one that reads from source.
func NewSchemas(source SchemaSource) *Schemas {
	return &Schemas{source: source, known: map[string]*exactmatch.Schema{}}
}

// FileSchemas are schemas from the database files alone. They do for hardness, which
// foreign keys do not touch, and spare a large tables file.
func FileSchemas(databases Databases) *Schemas { return NewSchemas(files{databases}) }

type files struct{ Databases }

func (f files) Schema(dbID string) (*sql.Schema, error) {
	d, err := f.Database(dbID)
	if err != nil {
		return nil, err
	}
	return d.Schema()
}

func (f files) Described(string) (*sql.Schema, error) { return nil, nil }

// Get returns the schema of a database.
func (s *Schemas) Get(dbID string) (*exactmatch.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.known[dbID]; known != nil {
		return known, nil
	}
	schema, err := s.source.Schema(dbID)
	if err != nil {
		return nil, err
	}
	described, err := s.source.Described(dbID)
	if err != nil {
		return nil, err
	}
	s.known[dbID] = exactmatch.NewSchema(schema, described)
	return s.known[dbID], nil
}
