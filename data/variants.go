package data

import (
	"os"
	"path/filepath"
	"strings"

	"caper/sqlexec"
)

// Variants opens a database and its variants, the other .sqlite files of its folder:
// a test suite has many, with the same schema and other rows, on each of which a
// prediction has to give what gold gives. The database itself is the first.
func (b *Benchmark) Variants(dbID string) ([]*sqlexec.Database, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if v := b.variants[dbID]; v != nil {
		return v, nil
	}
	main, err := b.database(dbID)
	if err != nil {
		return nil, err
	}
	files, err := os.ReadDir(filepath.Dir(main.Path()))
	if err != nil {
		return nil, err
	}
	all := []*sqlexec.Database{main}
	for _, f := range files {
		path := filepath.Join(filepath.Dir(main.Path()), f.Name())
		if path == main.Path() || f.IsDir() || !strings.HasSuffix(f.Name(), ".sqlite") {
			continue
		}
		d, err := sqlexec.Open(path, b.Limits)
		if err != nil {
			for _, opened := range all[1:] {
				opened.Close()
			}
			return nil, err
		}
		all = append(all, d)
	}
	if b.variants == nil {
		b.variants = map[string][]*sqlexec.Database{}
	}
	b.variants[dbID] = all
	return all, nil
}
