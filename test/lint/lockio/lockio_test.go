package lockio_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/lockstep-dns/lockstep/test/lint/lockio"
)

func TestAnalyzer(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), lockio.Analyzer, "held", "former")
}
