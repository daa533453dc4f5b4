package serve

import (
	"net/http"
	"slices"
)

// known refuses names that are no database's: no other name comes near a path.
func (s *Service) known(id string) error {
	ids, err := s.Bench.DatabaseIDs()
	if err != nil {
		return err
	}
	if _, found := slices.BinarySearch(ids, id); !found {
		return refuse(http.StatusNotFound, "db_id %q: there is no such database here", id)
	}
	return nil
}

// databases lists the names: {"databases": [...], "examples": [...]}.
func (s *Service) databases(w http.ResponseWriter, r *http.Request) {
	ids, err := s.Bench.DatabaseIDs()
	if err != nil {
		replyError(w, err)
		return
	}
	reply(w, http.StatusOK, map[string]any{"databases": ids, "examples": s.examples(), "generators": len(s.Generators), "scores": s.Scorer != nil})
}

// examples are some of the questions whose candidates are known.
func (s *Service) examples() []Question {
	const most = 200
	all := make([]Question, 0, len(s.Known))
	for q := range s.Known {
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b Question) int {
		return slices.Compare([]string{a.Database, a.Text, a.Evidence}, []string{b.Database, b.Text, b.Evidence})
	})
	return all[:min(len(all), most)]
}

// table is one of a database's.
type table struct {
	Name    string   `json:"name"`
	Columns []column `json:"columns"`
}

type column struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
}

// schema describes a database: {"tables": [...]}.
func (s *Service) schema(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if err := s.known(id); err != nil {
		replyError(w, err)
		return
	}
	schema, err := s.Bench.Schema(id)
	if err != nil {
		replyError(w, err)
		return
	}
	tables := []table{}
	for _, t := range schema.Tables {
		described := table{Name: t.Name, Columns: []column{}}
		for _, c := range t.Columns {
			described.Columns = append(described.Columns, column{c.Name, c.Type})
		}
		tables = append(tables, described)
	}
	reply(w, http.StatusOK, map[string]any{"tables": tables})
}
