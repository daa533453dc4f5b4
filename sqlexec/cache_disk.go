package sqlexec

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// DiskCache keeps results from one run of the program to the next, in a folder of
// segments: files of records, one behind the other, of which each process writes
// its own and reads all that it finds when it opens the folder. Nothing is locked
// or changed in place, so processes may share a folder, and one that is killed
// spoils at most the record it was writing. Every record is checked when it is
// read; one that is broken is not there.
//
// The folder holds at most its size: a process that begins a segment removes the
// oldest ones. Several processes that write at once may pass it by a segment, a
// sixteenth, each.
type DiskCache struct {
	dir         string
	maxBytes    int64
	segmentSize int64
	origins     sync.Map // content of a database to func() origin
	found       atomic.Int64

	mu       sync.RWMutex
	segments []*os.File
	places   map[uint64]place // by the first half of the key
	own      *os.File         // the segment that this process writes, or nil
	ownBytes int64
	failed   error // of writing; nothing is kept from then on
	kept     int
}

// DiskStats counts what a disk cache did in this process.
type DiskStats struct {
	// Found were answered, Kept were added.
	Found, Kept int
	// Err says why results are no longer kept, if so.
	Err error
}

// place is where a record lies.
type place struct{ segment, offset, size uint32 }

const (
	segmentSuffix    = ".results"
	segmentsOfACache = 16
	// minCacheBytes is a size below which a cache would keep nothing of use.
	minCacheBytes = 1 << 20
	// maxSegmentBytes lets a place be small.
	maxSegmentBytes = 1 << 30
)

// OpenDiskCache opens the cache in a folder, which it makes if need be.
func OpenDiskCache(dir string, maxBytes int64) (*DiskCache, error) {
	if maxBytes < minCacheBytes {
		return nil, fmt.Errorf("result cache %s: a size of %d bytes: want at least %d", dir, maxBytes, minCacheBytes)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("result cache: %w", err)
	}
	c := &DiskCache{
		dir: dir, maxBytes: maxBytes, segmentSize: min(maxBytes/segmentsOfACache, maxSegmentBytes),
		places: map[uint64]place{},
	}
	found, err := c.list()
	if err != nil {
		return nil, fmt.Errorf("result cache: %w", err)
	}
	for _, path := range found {
		f, err := os.Open(path)
		if err != nil {
			continue // another process has removed it
		}
		c.segments = append(c.segments, f)
		if err := c.index(f); err != nil {
			c.Close()
			return nil, fmt.Errorf("result cache %s: %w", path, err)
		}
	}
	return c, nil
}

// Close ends the use of the cache.
func (c *DiskCache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, f := range c.segments {
		errs = append(errs, f.Close())
	}
	c.segments, c.own, c.places = nil, nil, nil
	c.failed = errors.New("the cache is closed")
	return errors.Join(errs...)
}

// Stats returns what the cache did so far.
func (c *DiskCache) Stats() DiskStats {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return DiskStats{Found: int(c.found.Load()), Kept: c.kept, Err: c.failed}
}

// list returns the segments, the oldest first: their names begin with their time.
func (c *DiskCache) list() ([]string, error) {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), segmentSuffix) {
			paths = append(paths, filepath.Join(c.dir, e.Name()))
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// A record is its key, its payload's length, a checksum of all else, the payload.
const (
	keyBytes    = 16
	headerBytes = keyBytes + 4 + 4
)

type diskKey [keyBytes]byte

func (k diskKey) half() uint64 { return binary.LittleEndian.Uint64(k[:]) }

func checksum(key diskKey, payload []byte) uint32 {
	sum := crc32.ChecksumIEEE(key[:])
	return crc32.Update(sum, crc32.IEEETable, payload)
}

// index notes the records of the segment added last. A torn record ends it.
func (c *DiskCache) index(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	r := bufio.NewReaderSize(f, 1<<18)
	var header [headerBytes]byte
	for offset := int64(0); ; {
		if _, err := io.ReadFull(r, header[:]); err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil
		} else if err != nil {
			return err
		}
		size := int64(binary.LittleEndian.Uint32(header[keyBytes:])) + headerBytes
		if offset+size > min(info.Size(), 2*maxSegmentBytes) {
			return nil
		}
		c.places[diskKey(header[:keyBytes]).half()] = place{uint32(len(c.segments) - 1), uint32(offset), uint32(size)}
		if _, err := r.Discard(int(size) - headerBytes); err != nil {
			return err
		}
		offset += size
	}
}

// query is run, unless its outcome is there already.
func (c *DiskCache) query(d *Database, query string, run func() (Record, error)) (Record, error) {
	key, ok := c.key(d, query)
	if !ok {
		return run()
	}
	if record, ok := c.get(key); ok {
		return unpacked(record)
	}
	r, err := run()
	if record := packed(r, err); record != nil {
		c.put(key, record)
	}
	return r, err
}

// get returns the payload kept under a key.
func (c *DiskCache) get(key diskKey) ([]byte, bool) {
	c.mu.RLock()
	p, ok := c.places[key.half()]
	var f *os.File
	if ok {
		f = c.segments[p.segment]
	}
	c.mu.RUnlock()
	if !ok {
		return nil, false
	}
	record := make([]byte, p.size)
	if _, err := f.ReadAt(record, int64(p.offset)); err != nil {
		return nil, false
	}
	payload := record[headerBytes:]
	if diskKey(record[:keyBytes]) != key || binary.LittleEndian.Uint32(record[keyBytes+4:]) != checksum(key, payload) {
		return nil, false
	}
	c.found.Add(1)
	return payload, true
}

// put keeps a payload under a key.
func (c *DiskCache) put(key diskKey, payload []byte) {
	size := int64(headerBytes + len(payload))
	if size > c.segmentSize/2 { // it would push too much else out
		return
	}
	record := make([]byte, 0, size)
	record = append(record, key[:]...)
	record = binary.LittleEndian.AppendUint32(record, uint32(len(payload)))
	record = binary.LittleEndian.AppendUint32(record, checksum(key, payload))
	record = append(record, payload...)

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil {
		return
	}
	if c.failed = c.append(key, record); c.failed == nil {
		c.kept++
	}
}

func (c *DiskCache) append(key diskKey, record []byte) error {
	if c.own == nil || c.ownBytes+int64(len(record)) > c.segmentSize {
		if err := c.begin(); err != nil {
			return err
		}
	}
	if _, err := c.own.Write(record); err != nil {
		return err
	}
	c.places[key.half()] = place{uint32(len(c.segments) - 1), uint32(c.ownBytes), uint32(len(record))}
	c.ownBytes += int64(len(record))
	return nil
}

// begin makes room and starts a segment. A segment that is removed can be read
// until the cache is closed.
func (c *DiskCache) begin() error {
	if err := c.trim(c.maxBytes - c.segmentSize); err != nil {
		return err
	}
	name := fmt.Sprintf("%020d-%d%s", time.Now().UnixNano(), os.Getpid(), segmentSuffix)
	f, err := os.OpenFile(filepath.Join(c.dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	c.segments = append(c.segments, f)
	c.own, c.ownBytes = f, 0
	return nil
}

// trim removes the oldest segments until the others take at most maxBytes.
func (c *DiskCache) trim(maxBytes int64) error {
	paths, err := c.list()
	if err != nil {
		return err
	}
	var total int64
	slices.Reverse(paths)
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			continue // another process was quicker
		}
		if total += info.Size(); total > maxBytes {
			err := os.Remove(path)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}
