package safetensors

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// shardName is what the files of sharded weights are called, by us and by others:
// official releases repeat ".safetensors" in the middle.
var shardName = regexp.MustCompile(`^model(\.safetensors)?-\d+-of-\d+\.safetensors$`)

// WriteFolder stores entries in dir as Hugging Face does: in model.safetensors, or,
// where they are larger than maxShardBytes, in shards of at most so many bytes of
// elements, in the order of entries, with an index. A tensor is never cut. 0 stands for
// one file of any size. The index is written last; weights that dir held before are
// removed.
func WriteFolder(dir string, entries []Entry, metadata map[string]string, maxShardBytes int) error {
	if err := checkNames(entries); err != nil {
		return fmt.Errorf("writing %s: %w", dir, err)
	}
	// transformers takes model.safetensors before an index, we an index before it:
	// neither may be left of another model.
	if err := removeWeights(dir); err != nil {
		return err
	}
	shards := split(entries, maxShardBytes)
	if len(shards) == 1 {
		return Write(filepath.Join(dir, SingleName), entries, metadata)
	}
	index := index{Files: map[string]string{}}
	for i, shard := range shards {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(shards))
		if err := Write(filepath.Join(dir, name), shard, metadata); err != nil {
			return err
		}
		for _, e := range shard {
			index.Files[e.Name] = name
			index.Metadata.Bytes += e.Bytes()
			index.Metadata.Elements += e.Len()
		}
	}
	text, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return err
	}
	return WriteText(filepath.Join(dir, IndexName), append(text, '\n'))
}

// index is the content of an index file. JSON sorts the map.
type index struct {
	Metadata struct {
		Elements int `json:"total_parameters"`
		Bytes    int `json:"total_size"`
	} `json:"metadata"`
	Files map[string]string `json:"weight_map"`
}

// split cuts entries into groups of at most max bytes, or of one entry that has more.
func split(entries []Entry, max int) [][]Entry {
	if max <= 0 || len(entries) == 0 {
		return [][]Entry{entries}
	}
	var shards [][]Entry
	first, size := 0, 0
	for i := range entries {
		n := entries[i].Bytes()
		if i > first && size+n > max {
			shards = append(shards, entries[first:i])
			first, size = i, 0
		}
		size += n
	}
	return append(shards, entries[first:])
}

func checkNames(entries []Entry) error {
	seen := map[string]bool{}
	for i := range entries {
		if err := entries[i].check(); err != nil {
			return err
		}
		if seen[entries[i].Name] {
			return fmt.Errorf("tensor %q: name used twice", entries[i].Name)
		}
		seen[entries[i].Name] = true
	}
	return nil
}

// removeWeights removes the weight files of dir, the index first.
func removeWeights(dir string) error {
	found, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	names := []string{IndexName}
	for _, f := range found {
		if f.Name() == SingleName || shardName.MatchString(f.Name()) {
			names = append(names, f.Name())
		}
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// WriteText replaces the file at path as a whole.
func WriteText(path string, content []byte) error {
	temp := path + ".partial"
	if err := os.WriteFile(temp, content, 0o644); err != nil {
		os.Remove(temp)
		return err
	}
	return os.Rename(temp, path)
}
