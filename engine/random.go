package engine

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
)

// Random returns the random stream of one use: the same key gives the same
// numbers whatever ran before, so a resumed or re-ordered run draws what the
// first one drew. purpose names the use ("init", "sample", "shuffle").
func Random(seed uint64, purpose string, step, sample uint64) *rand.Rand {
	h := fnv.New128a()
	var key [24]byte
	binary.LittleEndian.PutUint64(key[0:], seed)
	binary.LittleEndian.PutUint64(key[8:], step)
	binary.LittleEndian.PutUint64(key[16:], sample)
	h.Write(key[:])
	h.Write([]byte(purpose))
	sum := h.Sum(nil)
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum), binary.LittleEndian.Uint64(sum[8:])))
}
