// What stage 07 says about itself. The byte model, of the two launches and of clusters, is checked against
// the count of the simulator at every run.
#include <cmath>

#include "harness/stage_info.hpp"
#include "split_plan.hpp"

namespace softmax {

const stage_info& this_stage() {
  static const stage_info stage{
      .number = "07",
      .folder = "stages/07_split_row",
      .idea = "a row over several blocks, which exchange maximum and sum",
      .fit =
          [](stage_info& stage, const matrix_shape& s, dtype t, int cluster_blocks) {
            const std::int64_t parts = parts_of(s);
            stage.workspace = {.m = 2 * parts};
            stage.launches = {
                {.kernel = "reduce_parts", .reads_storage = {.mn = 1}, .writes_f32 = {.m = 2 * parts}},
                {.kernel = "normalise_parts",
                 .reads_storage = {.mn = 1},
                 .reads_f32 = {.m = 2 * parts * parts},  // each block of a row reads all its parts
                 .writes_storage = {.mn = 1}}};
            if (cluster_blocks < most_parts || beyond_clusters(s)) return;
            if (for_lone_blocks(s, size_of(t))) {
              stage.launches = {
                  {.kernel = "softmax_few", .reads_storage = {.mn = 1}, .writes_storage = {.mn = 1}}};
              return;
            }
            // What clusters do not hold of a row is read again: whole vectors here, and the few elements
            // beside them are left out.
            const std::int64_t in_a_vector = 16 / static_cast<std::int64_t>(size_of(t));
            if (in_ring(s, size_of(t))) {  // its counter takes the workspace's first 4 bytes
              const std::int64_t again = ring_reloads(s, size_of(t)) * in_a_vector;
              stage.launches = {{.kernel = "softmax_ring",
                                 .reads_storage = {.mn = 1, .m = again},
                                 .writes_storage = {.mn = 1}}};
              return;
            }
            const split_plan plan = cluster_plan(s, size_of(t));  // all but its last trip over the row
            const std::int64_t held = std::int64_t{plan.parts} * plan.threads * plan.items;
            const std::int64_t vectors = vectors_of(s, size_of(t)) - std::int64_t{plan.parts} * plan.kept;
            const std::int64_t trips = divided_up(vectors, held);
            const std::int64_t again = trips > 1 ? (trips - 1) * held * in_a_vector : 0;
            stage.launches = {{.kernel = "softmax_cluster",
                               .reads_storage = {.mn = 1, .m = again},
                               .writes_storage = {.mn = 1}}};
          },
      .uses_clusters = true,
      // A thread adds 64 values or less at a time, and may rescale its sum after each 8 or more, an
      // exponential and two products; then an edge; then at most four merges of a warp's lanes, over warps
      // and over parts.
      .sum_depth =
          [](const matrix_shape& s) {
            const double times =
                std::ceil(static_cast<double>(s.cols) / (double{part_values} * most_part_threads)) + 2;
            return 72 + 5 * times + 2 * 6 * 6 + 16;
          },
      .exponent_roundings = 2.5,  // the difference, its product with log2(e), and log2(e) itself
      .bits_depend_on_rows = true,  // as the number of parts does
      .next = "make report: all stages side by side",
  };
  return stage;
}

}  // namespace softmax
