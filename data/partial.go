package data

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Partial is a file of tuples, or of other lines, that outlives the program that writes it, so that a
// later run can go on with it. Its JSON Lines lie beside the file's own name, in
// PATH.partial, and PATH.journal says how many of their bytes count and what the
// writer has to know to go on behind them. Commit makes the file of them.
//
// At whatever moment the program is killed, the journal is whole and the bytes that
// it counts are there. What was written behind them is cut off and made again.
type Partial struct {
	path   string
	f      *os.File
	buffer *bufio.Writer
	bytes  int64
	kept   bool   // there is a journal
	forget func() // until then the file is worth nothing without its writer
}

// journal is the content of PATH.journal.
type journal struct {
	Bytes int64           `json:"bytes"`
	State json.RawMessage `json:"state"`
}

// ErrUnfinished says that the lines of an unfinished run are in the way.
var ErrUnfinished = errors.New("an earlier run to this file was stopped before its end")

// ResumePartial opens an unfinished file behind its last checkpoint, and reads what
// that noted into state. Where there is none, found is false and the file is new.
func ResumePartial(path string, state any) (p *Partial, found bool, err error) {
	if p, err = openPartial(path); err != nil {
		return nil, false, err
	}
	if err = p.restore(state); err != nil {
		p.f.Close()
		return nil, false, fmt.Errorf("resume %s: %w", path, err)
	}
	return p, p.kept, nil
}

// CreatePartial starts a new file; ErrUnfinished where ResumePartial would find one.
func CreatePartial(path string) (*Partial, error) {
	p, found, err := ResumePartial(path, &json.RawMessage{})
	if err == nil && found {
		p.f.Close()
		return nil, fmt.Errorf("write %s: %w", path, ErrUnfinished)
	}
	return p, err
}

func (p *Partial) journal() string { return p.path + ".journal" }

// openPartial opens the file of lines, which one process at a time may write.
func openPartial(path string) (*Partial, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("write %s: not a regular file: choose another name", path)
	}
	f, err := os.OpenFile(path+".partial", os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, cannotCreate(path, err)
	}
	p := &Partial{path: path, f: f, buffer: bufio.NewWriterSize(f, 1<<16), forget: func() {}}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == unix.EWOULDBLOCK {
		f.Close()
		return nil, fmt.Errorf("write %s: another process is writing it: wait for its end, or choose another name", path)
	}
	return p, nil
}

// restore goes back to the last checkpoint.
func (p *Partial) restore(state any) error {
	j, err := p.readJournal()
	if err != nil {
		return err
	}
	info, err := p.f.Stat()
	if err != nil {
		return err
	}
	// Lines are missing when the program was killed between the two steps of
	// Commit: they have the file's own name already.
	if j != nil && info.Size() >= j.Bytes {
		if err := json.Unmarshal(j.State, state); err != nil {
			return fmt.Errorf("%s: %w: remove it to start anew", p.journal(), PlainJSONError(err))
		}
		p.bytes, p.kept = j.Bytes, true
	} else {
		p.forget = Temporary(p.f.Name())
		os.Remove(p.journal()) // of other lines than those that come now
	}
	if err := p.f.Truncate(p.bytes); err != nil {
		return err
	}
	_, err = p.f.Seek(p.bytes, io.SeekStart)
	return err
}

// readJournal returns nil where there is none.
func (p *Partial) readJournal() (*journal, error) {
	text, err := os.ReadFile(p.journal())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	j := &journal{}
	if err := json.Unmarshal(text, j); err != nil {
		return nil, fmt.Errorf("%s: %w: remove it to start anew", p.journal(), PlainJSONError(err))
	}
	return j, nil
}

// IDs streams the ids of the tuples that an earlier run has left.
func (p *Partial) IDs() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		type named struct {
			ID string `json:"id"`
		}
		decode := func(object []byte, n *named) error { return json.Unmarshal(object, n) }
		for n, err := range readJSONLines(p.f.Name(), decode) {
			if !yield(n.ID, err) {
				return
			}
		}
	}
}

// Rollouts streams the rollouts that an earlier run has left.
func (p *Partial) Rollouts() iter.Seq2[Rollout, error] {
	return readJSONLines(p.f.Name(), func(object []byte, r *Rollout) error { return r.UnmarshalJSON(object) })
}

// Write appends a tuple.
func (p *Partial) Write(t Tuple) error {
	line, err := t.MarshalJSON() // Marshal would check the line once more
	return p.write(line, err)
}

// WriteLine appends a line of another kind, in a file that is no tuple file.
func (p *Partial) WriteLine(v any) error {
	line, err := Marshal(v)
	return p.write(line, err)
}

func (p *Partial) write(line []byte, err error) error {
	if err == nil {
		var n int
		n, err = p.buffer.Write(append(line, '\n'))
		p.bytes += int64(n)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", p.path, err)
	}
	return nil
}

// Checkpoint makes what is written last, together with the state of whoever writes:
// a later run goes on from here.
func (p *Partial) Checkpoint(state any) error {
	text, err := Marshal(state)
	if err != nil {
		return fmt.Errorf("write %s: %w", p.journal(), err)
	}
	if err := errors.Join(p.buffer.Flush(), p.f.Sync()); err != nil {
		return fmt.Errorf("write %s: %w", p.path, err)
	}
	j, err := Create(p.journal())
	if err != nil {
		return err
	}
	defer j.Discard()
	if err := j.WriteLine(journal{p.bytes, text}); err != nil {
		return err
	}
	if err := j.Commit(); err != nil {
		return err
	}
	p.kept = true
	p.forget()
	return nil
}

// Commit gives the file its name, in the format that the name tells.
func (p *Partial) Commit() error {
	if err := p.commit(); err != nil {
		return fmt.Errorf("write %s: %w", p.path, err)
	}
	return nil
}

func (p *Partial) commit() error {
	defer p.f.Close()
	defer p.forget()
	if err := errors.Join(p.buffer.Flush(), p.f.Sync()); err != nil {
		return err
	}
	if IsParquet(p.path) {
		if err := ConvertTuples(p.f.Name(), p.path); err != nil {
			return err
		}
		p.remove()
		return nil
	}
	if err := os.Rename(p.f.Name(), p.path); err != nil {
		return err
	}
	os.Remove(p.journal())
	return syncFolder(filepath.Dir(p.path))
}

// Kept reports whether there is a checkpoint.
func (p *Partial) Kept() bool { return p.kept }

// Close ends writing without a commit and reports whether something is kept that a
// later run can go on with: what the last checkpoint noted.
func (p *Partial) Close() (kept bool) {
	p.f.Close()
	p.forget()
	if !p.kept {
		p.remove()
	}
	return p.kept
}

func (p *Partial) remove() {
	os.Remove(p.journal())
	os.Remove(p.f.Name())
}
