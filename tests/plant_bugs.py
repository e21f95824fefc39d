"""Break it on purpose before believing the suite: each planted bug must make its tests fail. Run before releases.

    python -m tests.plant_bugs [FILE ...]      only bugs in files whose path holds one of these, if any are given

Works on a copy of the checkout, with its compiled kernels at hand: what a bug in a kernel changes must be compiled anew
all the same. Prints one line per bug; exits 1 when a bug survives (or no longer applies).
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import ROOT
from tests.support.planted_kernel_bugs import KERNEL_BUGS, Bug

PROGRESSIVE = "tests/prediction/test_observer.py"
CRASH, ENGINE, GOLDEN = "tests/crash/test_crash_anywhere.py", "tests/state/test_engine.py", "tests/state/test_golden.py"
CERTIFICATE, SPUR, BOOST = (
    "tests/clustering/test_certificate.py",
    "tests/clustering/test_spur.py",
    "tests/boosting/test_triplet_boost.py",
)
LAWS, SPACE = "tests/laws/test_accumulators.py", "tests/data/test_mapped_arrays.py"
BOUNDS = "tests/hardening/test_bounds.py"
BUGS = [
    Bug(
        "a merged reservoir keeps what only one of both knows whole",
        "stream_engine/accumulators/judgements.py",
        "        if below < self._below:\n",
        "        if False:\n",
        "tests/accumulators/test_judgements.py -k lowers_the_threshold",
    ),
    Bug(
        "two judgements of one hash are one",
        "stream_engine/accumulators/judgement_kernels.py",
        "            if held.rows[held.begin[i] + r, side] != some.rows[row + r, side]:\n",
        "            if False:\n",
        "tests/accumulators/test_judgements.py -k equal_hashes",
    ),
    Bug(
        "the end of a judgement that came in pieces is one by itself",
        "stream_engine/accumulators/judgements.py",
        "        if kinds is not None and (kinds.continues or kinds.goes_on):\n",
        "        if kinds is not None and kinds.goes_on:\n",
        "tests/accumulators/test_judgements.py -k too_large",
    ),
    Bug(
        "counts are calibrated on answers that they do not hold",
        "stream_engine/prediction/probability.py",
        "found.of(part >= CHOOSE)), name)",
        "found.of(part > CHOOSE)), name)",
        "tests/prediction/test_probability.py",
    ),
    Bug(
        "a CSV block may end inside a record that a stray quote begins",
        "connectors/files/csv_scanner.py",
        "            at = _end_of_stray(buffer, at, size, fields, too_many)\n",
        '            at = buffer.find(b"\\n", at, size) + 1\n',
        "tests/fuzz/test_text.py",
    ),
    Bug(
        "a byte order mark at the start of a block is passed over",
        "stream_engine/formats/csv_events.py",
        "    if value.startswith(BOM_UTF8):\n",
        "    if False:\n",
        "tests/laws/test_formats.py",
    ),
    Bug(
        "text columns of Arrow hold numbers and lists",
        "stream_engine/formats/arrow_events.py",
        "return TEXT_CELLS.items() <= (schema.metadata or {}).items()",
        "return True",
        "tests/laws/test_formats.py",
    ),
    Bug(
        "the ETag does not follow the content",
        "stream_engine/service/http/export_cache.py",
        "            digest.update(piece)\n",
        "            pass\n",
        "tests/service/test_http.py -k tag",
    ),
    Bug(
        "an export is built for each who asks",
        "stream_engine/service/http/export_cache.py",
        "                if key not in self._building:\n                    self._start",
        "                if True:\n                    self._start",
        "tests/service/test_http.py -k once",
    ),
    Bug(
        "bytes that drip in keep a connection",
        "stream_engine/service/http/connection.py",
        "        if self.answering and self._idle_clock:\n",
        "        if self._idle_clock:\n",
        "tests/service/test_http_limits.py -k drips",
    ),
    Bug(
        "the admin listener takes the readers' token",
        "stream_engine/service/http/serving.py",
        "Token(actions, [settings.admin_token], refusals)",
        "Token(actions, [settings.admin_token, settings.token or settings.admin_token], refusals)",
        "tests/service/test_http_access.py -k own_token",
    ),
    Bug(
        "a compressed buffer is taken for as large as it is in the file",
        "connectors/arrow_headers.py",
        "sizes = tuple(size if each == -1 else each for each, size in claimed)",
        "pass",
        BOUNDS + " -k unpacks_to",
    ),
    Bug(
        "an event whose comparisons come in pieces is counted with each of them",
        "stream_engine/formats/expand_in_pieces.py",
        "            run.first > 0,\n",
        "            False,\n",
        BOUNDS + " -k comparisons_in_pieces",
    ),
    Bug(
        "running out of memory is a verdict about a message",
        "stream_engine/formats/arrow_events.py",
        "            raise_if_out_of_memory(error)\n            return unreadable(",
        "            return unreadable(",
        BOUNDS + " -k memory_is_over",
    ),
    Bug(
        "a snapshot is copied where there is no room for it, although a refit would end",
        "stream_engine/service/memory.py",
        "        if self.left() >= needed:\n",
        "        if self.left() >= 0:\n",
        "tests/service/test_memory.py",
    ),
    Bug(
        "a snapshot's content is not synced",
        "connectors/disk.py",
        "            _sync_whole(disk, temporary)\n",
        "            pass\n",
        CRASH,
    ),
    Bug(
        "a snapshot's name is not synced",
        "connectors/disk.py",
        '        disk.fsync_dir(folder or ".")\n',
        "        pass\n",
        CRASH,
    ),
    Bug(
        "a new folder's name is not synced",
        "connectors/disk.py",
        '        disk.fsync_dir(os.path.dirname(new) or ".")\n',
        "",
        CRASH,
    ),
    Bug(
        "a backup names its snapshot before it has what that relies on",
        "stream_engine/state/backup.py",
        "    position = snapshots[0].counters",
        "    position = snapshots[-1].counters",
        "tests/crash/test_backup_crash.py",
    ),
    Bug(
        "a restore begins without saying so",
        "stream_engine/state/restored_backup.py",
        "    if not disk.exists(directory / MARK) or Store(",
        "    if Store(",
        "tests/crash/test_backup_crash.py",
    ),
    Bug(
        "what is to be removed is not said before a state without an object is published",
        "stream_engine/state/forget_in_place.py",
        "    sweeping.mark(store.directory",
        "    store.snapshot_path(0) or sweeping.mark(store.directory",
        "tests/crash/test_forget_crash.py",
    ),
    Bug(
        "AddS keeps what a forgotten object had added to others",
        "stream_engine/accumulators/leaving.py",
        '    ends, added = [(t["anchor"], t["lo"]), (t["anchor"], t["hi"])], [net, -net]\n',
        '    ends, added = [(t["anchor"], t["lo"]), (t["anchor"], t["hi"])], [net, net]\n',
        "tests/laws/test_leaving.py",
    ),
    Bug(
        "a closed file that was renamed is not looked for",
        "connectors/files/followed_path.py",
        "found = self._siblings.find(",
        "found = None and self._siblings.find(",
        "tests/connectors/test_tail.py -k rotated",
    ),
    Bug(
        "a closed file is known by its inode alone",
        "connectors/files/followed_path.py",
        "crc32(head) == mark",
        "True",
        "tests/connectors/test_tail.py -k inode",
    ),
    Bug(
        "a file is taken for unchanged within one tick of the clock",
        "connectors/files/followed_path.py",
        "self._read_out_at - self._seen_since > SETTLED",
        "self._read_out_at - self._seen_since > 0",
        "tests/connectors/test_tail.py -k rewrite",
    ),
    Bug(
        "every followed file stays open",
        "connectors/files/tail.py",
        "while len(self._open) > self._most_open:",
        "while False:",
        "tests/connectors/test_tail.py -k descriptors",
    ),
    Bug(
        "every partition has series of its own",
        "stream_engine/service/partition_series.py",
        "partition if len(self._labels) < self._most else OTHER",
        "partition",
        "tests/service/test_metrics.py -k share",
    ),
    Bug(
        "pruning keeps one too few", "stream_engine/state/store.py", "if whole >= keep:", "if whole >= keep - 1:", CRASH
    ),
    Bug(
        "sorted rows have their ends the wrong way round",
        "stream_engine/guard/pair_rows.py",
        "near, far = key[both[e] >> 32], key[both[e] & 0xFFFFFFFF]",
        "near, far = key[both[e] & 0xFFFFFFFF], key[both[e] >> 32]",
        "tests/guard/test_canonical_order.py -k sorted_alike",
    ),
    Bug(
        "the canonical order of another snapshot is believed",
        "stream_engine/state/order_file.py",
        "if meta != self._meta(kept, net):",
        "if False:",
        "tests/state/test_order_file.py",
    ),
    Bug(
        "a remembered canonical order may hold a cycle",
        "stream_engine/exports/partial_order.py",
        "known is not None and is_acyclic(rows[known])",
        "known is not None",
        "tests/state/test_order_file.py",
    ),
    Bug(
        "forgetting leaves canonical orders of older snapshots",
        "stream_engine/state/sweeping.py",
        '(".snapshot", ".order")',
        '(".snapshot",)',
        "tests/state/test_order_file.py",
    ),
    Bug(
        "kernels that a called kernel names stay stand-ins",
        "stream_engine/data/compiled.py",
        "                todo.append(value)",
        "                pass",
        "tests/data/test_stand_ins.py",
    ),
    Bug(
        "kernels of an enclosing function stay stand-ins",
        "stream_engine/data/compiled.py",
        "            cell.cell_contents = value.made",
        "            pass",
        "tests/data/test_stand_ins.py",
    ),
    Bug(
        "a damaged snapshot is not told from a whole one",
        "stream_engine/data/container.py",
        "if digest.digest() != view[end : end + _DIGEST]:",
        "if False:",
        "tests/data/test_container.py",
    ),
    Bug(
        "a newer version is passed over like damage",
        "stream_engine/state/store.py",
        ("            except LeftAlone:\n                raise\n"),
        "",
        "tests/commands/test_bad_input.py -k newer",
    ),
    Bug(
        "ids of a snapshot are not held against the number of objects",
        "stream_engine/data/array_checks.py",
        "(below is not None and high >= below)",
        "False",
        "tests/state/test_distrust.py -k crafted_state",
    ),
    Bug(
        "a cycle in a stored order is not noticed",
        "stream_engine/guard/exact_guard.py",
        "        if len(order) < n:\n",
        "        if False:\n",
        "tests/state/test_distrust.py -k serves_every_verb",
    ),
    Bug(
        "a signature is taken for right",
        "stream_engine/data/signatures.py",
        "if hmac.compare_digest(signature(signing.key, digest), found):",
        "if found:",
        "tests/state/test_signed_states.py",
    ),
    Bug(
        "positions are forgotten on restore",
        "stream_engine/state/engine.py",
        "        engine.positions = dict(snapshot.positions)\n",
        "",
        CRASH,
    ),
    Bug(
        "the dead letters' position is forgotten",
        "stream_engine/state/engine.py",
        'engine.sinks = engine.counters.pop("sinks", {})',
        'engine.counters.pop("sinks", {})',
        CRASH,
    ),
    Bug(
        "a snapshot changes with the engine",
        "stream_engine/state/snapshot.py",
        "final = {name: array if _is_final(array) else allocation.copied(array) for name, array in arrays.items()}",
        "final = {name: array if _is_final(array) else array.view() for name, array in arrays.items()}",
        ENGINE,
    ),
    Bug(
        "a view of an array on disk is handed over",
        "stream_engine/data/mapped_arrays.py",
        "return array.base is None or isinstance(array.base, _Pages)",
        "return array.base is None or isinstance(array.base, (_Pages, np.ndarray))",
        SPACE,
    ),
    Bug(
        "arrays on disk have names that stay",
        "stream_engine/data/mapped_arrays.py",
        "with tempfile.TemporaryFile(dir=self.folder) as file:",
        "with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:",
        SPACE,
    ),
    Bug(
        "a full disk is not noticed before it is written to",
        "stream_engine/data/mapped_arrays.py",
        "os.posix_fallocate(file.fileno(), 0, nbytes)",
        'file.write(b"0"), os.truncate(file.fileno(), nbytes)',
        f"{SPACE} -k reserved",
    ),
    Bug(
        "leftovers of a killed run stay",
        "stream_engine/data/mapped_arrays.py",
        "left.unlink()",
        "pass",
        SPACE,
    ),
    Bug(
        "a column that crosses a block is cut",
        "stream_engine/data/mapped_arrays.py",
        'first, end = np.searchsorted(start, part.start, "right") - 1, np.searchsorted(start, part.stop, "left")',
        'first, end = np.searchsorted(start, part.start, "left"), np.searchsorted(start, part.stop, "left")',
        SPACE,
    ),
    Bug(
        "counts stay in memory whatever is set",
        "stream_engine/service/open_run.py",
        "if settings.counts.on_disk_above:",
        "if False:",
        SPACE,
    ),
    Bug(
        "an array that is still counted into is handed over",
        "stream_engine/accumulators/triplet_counts.py",
        '        return handed_over({"lo": lo, "hi": hi, "start": start, "anchor": anchor}) | counts.counts()\n',
        (
            "        return handed_over(\n"
            '            {"lo": lo, "hi": hi, "start": start, "anchor": anchor, '
            '"n_lo": counts.n_lo, "n_hi": counts.n_hi}\n'
            "        )\n"
        ),
        "tests/laws/test_accumulators.py -k shares_nothing",
    ),
    Bug(
        "a kernel reads past its array, to no effect",
        "stream_engine/accumulators/sorted_counts.py",
        "key, top = low[0] >> one, high[0]",
        "key, top = low[len(low)] >> one, high[0]",
        "tests/laws/test_bounds_checks.py",
    ),
    Bug(
        "warm-up forgets to run over events",
        "stream_engine/commands/warm_up.py",
        '    "a run": _run,\n',
        "",
        "tests/commands/test_warm_up.py",
    ),
    Bug(
        "the captured order is read when it is sorted",
        "stream_engine/guard/exact_guard.py",
        'return lambda: {"kept": sorted_edges(keys, edges)[0]}',
        'return lambda: {"kept": sorted_edges(keys, self._edges())[0]}',
        f"{ENGINE} -k finished",
    ),
    Bug(
        "merging forgets to unite names",
        "stream_engine/state/engine.py",
        "mine.merge(type(mine).from_state(mine.renamed(state_of(name), new_id), self.allocation))",
        "mine.merge(type(mine).from_state(state_of(name), self.allocation))",
        ENGINE,
    ),
    Bug(
        "merging lets the same partition count twice",
        "stream_engine/state/engine.py",
        "both = sorted(self.positions.keys() & other.positions.keys())",
        "both = []",
        ENGINE,
    ),
    Bug(
        "ids are not given by first appearance",
        "stream_engine/data/interner.py",
        "            ids[q] = np.int64(table[slot] & np.uint64(0xFFFFFFFF)) - 1\n            if ask",
        "            ids[q] = n - np.int64(table[slot] & np.uint64(0xFFFFFFFF))\n            if ask",
        ENGINE,
    ),
    Bug(
        "names are found by their hash alone",
        "stream_engine/data/interner.py",
        "return offsets[i + 1] - first == length and same_bytes(utf8, first, asked, begin, length)",
        "return offsets[i + 1] - first == length",
        "tests/state/test_object_index.py",
    ),
    Bug(
        "a longer table forgets the names before",
        "stream_engine/data/interner.py",
        "_enter(self._table, self._utf8, self._offsets, n, self._key)",
        "_enter(self._table, self._utf8, self._offsets, n // 2, self._key)",
        "tests/state/test_object_index.py",
    ),
    Bug(
        "a line by template takes an escape as letters",
        "stream_engine/formats/json_matching.py",
        "_BACKSLASHES, _SPACES = _ONES * np.uint64(34), _ONES * np.uint64(92),",
        "_BACKSLASHES, _SPACES = _ONES * np.uint64(34), _ONES * np.uint64(1),",
        "tests/formats/test_json_plain_lines.py -k mangled",
    ),
    Bug(
        "a line by template takes an integer with leading zeros",
        "stream_engine/formats/json_matching.py",
        "(text[first] == 48 and (long > 1 or first > at))",
        "(text[first] == 48 and first > at)",
        "tests/formats/test_json_plain_lines.py -k numbers",
    ),
    Bug(
        "lines beside an array of events keep their own numbers",
        "stream_engine/formats/json_events.py",
        "more.append(more[-1] + len(items.texts) - 1)",
        "more.append(more[-1])",
        "tests/formats/test_json_plain_lines.py -k mixed",
    ),
    Bug(
        "factors of centred kernels forget the mean",
        "stream_engine/statistics/feature_space.py",
        "shift = np.zeros(right.shape[1]) if mean is None else mean @ right",
        "shift = np.zeros(right.shape[1])",
        "tests/statistics/test_kernels.py -k feature_space",
    ),
    Bug(
        "a block of rows is added without its last row",
        "stream_engine/statistics/feature_space.py",
        (
            '    """Add the products of all pairs of entries of every row to the lower triangle."""\n'
            "    for r in range(len(row) - 1):\n"
        ),
        (
            '    """Add the products of all pairs of entries of every row to the lower triangle."""\n'
            "    for r in range(len(row) - 2):\n"
        ),
        "tests/statistics/test_kernels.py -k feature_space",
    ),
    Bug(
        "a delta is not checked against its counters",
        "stream_engine/state/spark_deltas.py",
        '    _check(states, len(names), counters, _refused(tables.get("rejected")))\n',
        "",
        "tests/spark/test_deltas.py -k not_whole",
    ),
    Bug(
        "AddS of a delta is any AddS",
        "stream_engine/state/spark_deltas.py",
        "return int(np.sum(w.astype(np.uint64) * numbers, dtype=np.uint64))",
        "return int(np.sum(w))",
        "tests/spark/test_deltas.py -k not_whole",
    ),
    Bug(
        "the mirrored triangle loses its left half",
        "stream_engine/data/symmetric_matrices.py",
        "indices[entry], data[entry] = i[e], w[e]",
        "indices[entry], data[entry] = i[e], 0",
        "tests/end_to_end/test_many_objects.py -k triangle",
    ),
    Bug(
        "the last label does not win",
        "stream_engine/state/labels.py",
        "labelled[name] = label",
        "labelled.setdefault(name, label)",
        GOLDEN,
    ),
    Bug(
        "AddS exports lose the lower triangle",
        "stream_engine/data/symmetric_matrices.py",
        "matrix[i, j] = matrix[j, i] = w",
        "matrix[i, j] = w",
        "tests/laws/test_exports.py",
    ),
    Bug(
        "unique triplets count keys instead of directions",
        "stream_engine/exports/summary.py",
        '"unique_triplets": int(np.count_nonzero(columns.n_lo) + np.count_nonzero(columns.n_hi)),',
        '"unique_triplets": int(len(columns.anchor)),',
        "tests/laws/test_exports.py",
    ),
    Bug(
        "a window by time keeps what has left",
        "stream_engine/accumulators/window.py",
        "inside = time > self._newest - self._window",
        "inside = time > -np.inf",
        LAWS + " -k window",
    ),
    Bug(
        "a late triplet enters the window uncounted",
        "stream_engine/accumulators/window.py",
        "self._late += int(len(time) - inside.sum())",
        "self._late += 0",
        LAWS + " -k window",
    ),
    Bug(
        "a late comparison is not decayed",
        "stream_engine/accumulators/decayed_counts.py",
        "weight = np.exp2((t - self._reference) / self._half_life)",
        "weight = np.full(len(t), np.exp2((self._newest - self._reference) / self._half_life))",
        LAWS + " -k decayed",
    ),
    Bug(
        "rescaled sums keep their old reference",
        "stream_engine/accumulators/decayed_counts.py",
        "            self._reference = self._newest\n",
        "",
        LAWS + " -k decayed",
    ),
    Bug(
        "a state is resumed with another way of forgetting",
        "stream_engine/state/engine.py",
        '            **({"forgetting": forgetting} if forgetting else {}),\n',
        "",
        "tests/statistics/test_worker_reliability.py -k same_forgetting",
    ),
    Bug(
        "a worker's own votes are among the others'",
        "stream_engine/statistics/worker_reliability.py",
        "others = _by_key(votes, own)[votes.key] - own",
        "others = _by_key(votes, own)[votes.key]",
        "tests/statistics/test_worker_reliability.py -k records",
    ),
    Bug(
        "the predictor has seen whom it judges",
        "stream_engine/statistics/worker_reliability.py",
        "w = adds_matrix(votes, np.where(mine, 0.0, weight))",
        "w = adds_matrix(votes, weight)",
        "tests/statistics/test_worker_reliability.py -k said_themselves",
    ),
    Bug(
        "merging takes workers for others of the same number",
        "stream_engine/accumulators/worker_votes.py",
        'columns = [state["lo"], state["hi"], state["anchor"], ids[state["worker"]]]',
        'columns = [state["lo"], state["hi"], state["anchor"], state["worker"]]',
        LAWS + " -k worker_votes",
    ),
    Bug(
        "a catch trial is counted as a judgement",
        "stream_engine/formats/table_events.py",
        "    sure &= ~columns.catch_trials()\n",
        "",
        "tests/laws/test_formats.py -k catch",
    ),
    Bug(
        "workers are exported unasked",
        "stream_engine/commands/export.py",
        "for name in what or [name for name in exports.EXPORTS if name not in exports.ON_REQUEST]:",
        "for name in what or [name for name in exports.EXPORTS]:",
        "tests/statistics/test_worker_reliability.py -k unasked",
    ),
    Bug(
        "secrets are shown",
        "stream_engine/service/settings/secrets.py",
        "_sounds_secret(key)):\n        return HIDDEN\n",
        "_sounds_secret(key)):\n        return value\n",
        "tests/service/test_settings.py",
    ),
    Bug(
        "the file has precedence over the command line",
        "stream_engine/service/settings/precedence.py",
        "if value is not None:",
        "if value is not None and not path:",
        "tests/service/test_settings.py",
    ),
    # The semidefinite programs and SPUR.
    Bug(
        "a certificate is given without its eigenvalue condition",
        "stream_engine/clustering/certificate.py",
        "by = _eigenvalues_below(W, clipped, of, zero)",
        'by = "partition"',
        CERTIFICATE,
    ),
    Bug(
        "a certificate is given though its multiplier is negative",
        "stream_engine/clustering/certificate.py",
        "if clipped.deepest <= zero:",
        "if True:",
        CERTIFICATE,
    ),
    Bug(
        "the SDP-k bound leaves out an eigenvalue",
        "stream_engine/clustering/dual_bounds.py",
        "return base + float(np.maximum(values, 0).sum() if k is None else values[n - k :].sum())",
        "return base + float(np.maximum(values, 0).sum() if k is None else values[n - k + 1 :].sum())",
        CERTIFICATE,
    ),
    Bug(
        "the eigenvalues of X may exceed 1",
        "stream_engine/clustering/projection.py",
        "return np.clip(values - tau, 0.0, 1.0)",
        "return np.maximum(values - tau, 0.0)",
        "tests/clustering/test_sdp.py -k projection",
    ),
    Bug(
        "a repaired X keeps its negative entries",
        "stream_engine/clustering/feasible_point.py",
        "t = lift / (lift + flat / n)",
        "t = 0.5 * lift / (lift + flat / n)",
        CERTIFICATE,
    ),
    Bug(
        "SPUR's criterion counts one eigenvalue too many",
        "stream_engine/clustering/cascade.py",
        "return float((1 + np.sort(self.x)[::-1][: k - 1].sum()) / (1 + self.x.sum()))",
        "return float((1 + np.sort(self.x)[::-1][:k].sum()) / (1 + self.x.sum()))",
        SPUR,
    ),
    Bug(
        "SPUR's lambda forgets ln n",
        "stream_engine/clustering/spur.py",
        "lam = float(factor * np.sqrt(n_comparisons * np.log(n) / n))",
        "lam = float(factor * np.sqrt(n_comparisons / n))",
        SPUR,
    ),
    Bug(
        "SPUR certifies outside its range of lambda",
        "stream_engine/clustering/spur.py",
        "solution = proven(W, k, seed, (lowest, highest))",
        "solution = proven(W, k, seed, (-np.inf, np.inf))",
        SPUR,
    ),
    Bug(
        "the edge of chance is the first random copy's alone",
        "stream_engine/clustering/evidence.py",
        "edge = max(leading(each) for each in flipped(centred(dense(W)), seed))",
        "edge = next(leading(each) for each in flipped(centred(dense(W)), seed))",
        "tests/clustering/test_spur.py -k random_signs",
    ),
    Bug(
        "SPUR keeps the k of the smallest criterion",
        "stream_engine/clustering/spur.py",
        "best = int(np.argmax(tried))",
        "best = int(np.argmin(tried))",
        SPUR,
    ),
    Bug(
        "a warm start mixes the objects up",
        "stream_engine/clustering/warm_start.py",
        "grown[np.ix_(here, here)] = V[np.ix_(known[here], known[here])]",
        "grown[np.ix_(here, here)] = V[np.ix_(here, here)]",
        SPUR,
    ),
    Bug(
        "clusters are matched by the smallest overlap",
        "stream_engine/clustering/label_matching.py",
        "for new, kept in zip(*linear_sum_assignment(-overlap)):",
        "for new, kept in zip(*linear_sum_assignment(overlap)):",
        SPUR,
    ),
    Bug(
        "a new cluster takes the number of one that is gone",
        "stream_engine/clustering/label_matching.py",
        "free = iter(sorted(set(range(len(clusters) + len(old))) - set(old.tolist())))",
        "free = iter(sorted(set(range(len(clusters) + len(old))) - set(number.tolist())))",
        SPUR,
    ),
    Bug(
        "objects without evidence get a cluster",
        "stream_engine/clustering/similarity_of_snapshot.py",
        "return np.flatnonzero(degree >= max(minimum, 1))",
        "return np.flatnonzero(degree >= 0)",
        SPUR,
    ),
    Bug(
        "a node's revenue is its number in the tree",
        "stream_engine/refits/hierarchy.py",
        "total -= sums[a, b] * size",
        "total -= sums[a, b] * len(where)",
        "tests/refits/test_hierarchy.py",
    ),
    # TripletBoost.
    Bug(
        "acceleration follows the rounding of its history",
        "stream_engine/clustering/anderson.py",
        "REGULARISED = 1e-5  # of the mean squared residual; float32 has 1e-7",
        "REGULARISED = 1e-7  # of the mean squared residual; float32 has 1e-7",
        "tests/clustering/test_sdp.py -k run_away",
    ),
    Bug(
        "a control group's limit is not minded",
        "stream_engine/data/available_memory.py",
        "limits.append(int(most) - int(used.read_text()) + _of_files(group_limit.parent))",
        "pass",
        "tests/clustering/test_sdp.py -k free_memory",
    ),
    Bug(
        "going on forgets the rounds behind it when it asks for memory",
        "stream_engine/refits/triplet_boost.py",
        "_require_memory(world, params, params.rounds + behind)",
        "_require_memory(world, params, params.rounds)",
        BOOST + " -k cannot_fit",
    ),
    Bug(
        "alpha is not smoothed by 1/n",
        "stream_engine/boosting/rounds.py",
        "return 0.5 * np.log1p(edge / state.total[0] / (wrong + 1 / n))",
        "return 0.5 * np.log1p(edge / state.total[0] / (wrong + 1e-9))",
        BOOST,
    ),
    Bug(
        "a label sum is compared with the terms of all",
        "stream_engine/boosting/rounds.py",
        "says[side, y] = lead > tie * own",
        "says[side, y] = lead > tie * touched",
        "tests/boosting/test_exact_rounds.py",
    ),
    Bug(
        "small label sums forget how far their terms lag",
        "stream_engine/boosting/rounds.py",
        "small = own < SMALL and state.rng[2] > 0",
        "small = False",
        "tests/boosting/test_exact_rounds.py -k small",
    ),
    Bug(
        "equal weights do not cancel before the rest is looked at",
        "stream_engine/boosting/label_sums.py",
        "net[order[i + 1]] += net[order[i]]",
        "pass",
        "tests/boosting/test_exact_rounds.py -k small",
    ),
    Bug(
        "references of the same class are drawn",
        "stream_engine/boosting/rounds.py",
        "k = draw(state, state.group[j])",
        "k = draw(state, -1)",
        BOOST,
    ),
    Bug(
        "the totals of a class are never summed up anew",
        "stream_engine/boosting/rounds.py",
        "if state.group_sum[g] < 0.5 * state.group_peak[g]:",
        "if False:",
        BOOST,
    ),
    Bug(
        "votes ignore which reference came first",
        "stream_engine/boosting/votes.py",
        "say[0, y] += classifiers.alpha[c] * (on_k if turned else on_j)",
        "say[0, y] += classifiers.alpha[c] * on_j",
        BOOST,
    ),
    Bug(
        "a pair that is numbered the other way round keeps its sides",
        "stream_engine/boosting/codes.py",
        "code[at] = x << 1 | ((columns.n_lo[e] < columns.n_hi[e]) ^ turned)",
        "code[at] = x << 1 | (columns.n_lo[e] < columns.n_hi[e])",
        BOOST,
    ),
    Bug("held-out labels are trained on", "stream_engine/boosting/fit.py", "    training[watch] = False\n", "", BOOST),
    Bug(
        "early stopping keeps the last check",
        "stream_engine/boosting/fit.py",
        "kept = kept[: best + 2]",
        "kept = kept",
        BOOST,
    ),
    Bug(
        "a delta that is there is written again",
        "stream_engine/spark/driver.py",
        ("        if path.exists():\n            return False\n"),
        "",
        "tests/spark/test_spark.py -k killed",
    ),
    Bug(
        "a removed checkpoint counts everything twice",
        "stream_engine/spark/driver.py",
        "if owner != query:",
        "if False:",
        "tests/spark/test_deltas.py -k belongs",
    ),
    Bug(
        "tasks hand over ids in the order of arrival",
        "stream_engine/spark/task_counts.py",
        "order = sorted(range(len(held)), key=held.__getitem__)",
        "order = list(range(len(held)))",
        "tests/spark/test_deltas.py",
    ),
    Bug(
        "a missing delta is passed over",
        "connectors/spark_deltas.py",
        "if self._next not in self._numbers and later:",
        "if False:",
        "tests/spark/test_deltas.py -k wrong_with",
    ),
    Bug(
        "the guard hears the losing side of a batch",
        "stream_engine/state/spark_deltas.py",
        "rows = np.where((net > 0)[:, None], np.hstack([first, second]), np.hstack([second, first])).astype(np.int32)",
        "rows = np.where((net >= 0)[:, None] | True, np.hstack([first, second]), "
        "np.hstack([second, first])).astype(np.int32)",
        "tests/spark/test_deltas.py -k net_votes",
    ),
    Bug(
        "exports by name keep clusters in the old order",
        "stream_engine/state/artifact_schemas.py",
        '"labels": speaks(OBJECTS, values=LABELS),\n        "stability": _finite',
        '"labels": speaks(values=LABELS),\n        "stability": _finite',
        "tests/spark/test_deltas.py -k clusters",
    ),
    Bug(
        "questions that have an answer are asked again",
        "stream_engine/asking/known.py",
        "left = np.setdiff1d(_every(n), done, assume_unique=True)",
        "left = _every(n)",
        "tests/asking/test_asking.py -k distinct",
    ),
    Bug(
        "landmark questions are asked again that have an answer",
        "stream_engine/asking/landmark.py",
        "return rows[~contained(codes(rows, objects), done)].astype(np.int32)",
        "return rows.astype(np.int32)",
        "tests/asking/test_asking.py -k slow_listing",
    ),
    Bug(
        "refits of a file that ends start before its end",
        "stream_engine/service/refit_schedule.py",
        "or self._waits_for_end or newest is None",
        "or newest is None",
        "tests/service/test_refit_schedule.py -k once",
    ),
    Bug(
        "a question that was taken narrows nothing",
        "stream_engine/asking/information_gain.py",
        "        narrow(points, spread, away, alpha, lapse, scale, a, b, c, slopes, moved)\n",
        "",
        "tests/asking/test_ensemble.py -k quota",
    ),
    Bug(
        "a close question counts as one that teaches",
        "stream_engine/asking/ensemble.py",
        "return mean, max(0.0, bits(mean) - unsure / samples), information / samples",
        "return mean, bits(mean), information / samples",
        "tests/asking/test_ensemble.py -k merely_close",
    ),
    Bug(
        "an anchor is asked about as often as it likes",
        "stream_engine/asking/information_gain.py",
        "if times[a] >= quota:",
        "if times[a] > quota:",
        "tests/asking/test_sharing.py -k fair_share",
    ),
    Bug(
        "a random question is thought as likely as one of the model's",
        "stream_engine/asking/sharing.py",
        "propensity = share / left if sampler == RANDOM",
        "propensity = share + 0.0 * left if sampler == RANDOM",
        "tests/asking/test_sharing.py -k propensit",
    ),
    Bug(
        "questions that a model chose validate",
        "stream_engine/statistics/judgement_folds.py",
        "        left &= found.fair\n",
        "",
        "tests/statistics/test_judgement_folds.py -k model",
    ),
    Bug(
        "the online estimator takes the answer for its opposite",
        "stream_engine/estimators/online.py",
        "near, far = (left, right) if y else (right, left)",
        "near, far = (left, right) if not y else (right, left)",
        "tests/estimators/test_river.py -k addS",
    ),
    Bug(
        "a tie falls by the side it is shown on",
        "stream_engine/estimators/online.py",
        'return bool(zlib.crc32(f"{self.seed}\\0{anchor}\\0{lo}\\0{hi}".encode()) & 1) == (left == lo)',
        'return bool(zlib.crc32(f"{self.seed}\\0{anchor}\\0{lo}\\0{hi}".encode()) & 1)',
        "tests/estimators/test_river.py -k turning",
    ),
    Bug(
        "answers of -1 count as 1",
        "stream_engine/estimators/answers.py",
        "return np.where((answers > 0)[:, None], rows, turned)",
        "return rows",
        "tests/estimators/test_estimators.py -k form",
    ),
    Bug(
        "AddS-4 counts triplets twice when it parts from AddS-3",
        "stream_engine/accumulators/adds_similarity.py",
        "batch = batch._replace(triplets=batch.triplets[:0])",
        "pass",
        "tests/accumulators/test_common_sums.py",
    ),
    Bug(
        "a name met lately is taken for one with zeros behind it",
        "stream_engine/data/interner.py",
        "left += not (same and lately[at, 0] == one",
        "left += not (True and lately[at, 0] == one",
        "tests/data/test_interner.py -k lately",
    ),
    Bug(
        "the online kernel learns what still waits to be predicted",
        "stream_engine/service/prediction_monitor.py",
        "if not self._observer.waiting:  # what waits to be tested must not have been learned",
        "if True:  # what waits to be tested must not have been learned",
        "tests/prediction/test_online_predictor.py -k predicted_after",
    ),
    Bug(
        "the online kernel's lambda does not know the noise",
        "stream_engine/kernel_learning/online_kernel.py",
        "(self.lambda1 if self.lambda1 is not None else np.sqrt(3.0 / (n * max(self.seen, 1)))) * n / 3.0,",
        "(self.lambda1 if self.lambda1 is not None else 1e-6) * n / 3.0,",
        "tests/prediction/test_online_predictor.py -k close",
    ),
    Bug(
        "the reservoir forgets old triplets",
        "stream_engine/kernel_learning/online_kernel.py",
        "at = self._rng.integers(0, before + rest + 1) if len(rest) else rest",
        "at = self._rng.integers(0, room + 0 * rest) if len(rest) else rest",
        "tests/kernel_learning/test_rckl.py -k reservoir",
    ),
    Bug(
        "kernels' files are looked for in the working directory",
        "stream_engine/service/settings/precedence.py",
        "        rewrite_relative_paths(tree, Path(path).parent)\n",
        "",
        "tests/service/test_kernel_settings.py -k told",
    ),
    Bug(
        "objects without information get zero rows",
        "stream_engine/kernel_learning/auxiliary_kernels.py",
        "out = np.eye(len(objects))",
        "out = np.zeros((len(objects), len(objects)))",
        "tests/kernel_learning/test_auxiliary_kernels.py",
    ),
    Bug(
        "pictures flip between snapshots",
        "stream_engine/statistics/embedding.py",
        "return points @ turn + 0.0",
        "return points + 0.0",
        "tests/statistics/test_embedding.py",
    ),
    Bug(
        "waiting comparisons are tested by the next model",
        "stream_engine/prediction/observer.py",
        "        self.test()  # what waits was drawn when the snapshot before was served\n",
        "",
        PROGRESSIVE,
    ),
    Bug(
        "calibration learns before it predicts",
        "stream_engine/prediction/observer.py",
        "                self.scores.setdefault(name, Scores())"
        ".add(table(x, calibration.probability(x), kind[predicted]))\n",
        (
            "                calibration.learn(x)\n"
            "                self.scores.setdefault(name, Scores())"
            ".add(table(x, calibration.probability(x), kind[predicted]))\n"
        ),
        PROGRESSIVE,
    ),
    Bug(
        "the window of drift goes on after a cut",
        "stream_engine/prediction/drift.py",
        "            if self._cut:\n                self._window = self._new_window()\n",
        "",
        "tests/prediction/test_observer.py -k adwin",
    ),
    Bug(
        "an improvement is an alarm",
        "stream_engine/prediction/drift.py",
        "alarm |= now > before",
        "alarm = True",
        PROGRESSIVE,
    ),
    Bug(
        "a newer artifact predicts what it has seen",
        "stream_engine/prediction/learned.py",
        "if artifact is None or artifact.sequence > published.snapshot.sequence or name not in artifact.arrays:",
        "if artifact is None or False or name not in artifact.arrays:",
        PROGRESSIVE,
    ),
    Bug(
        "the window never forgets",
        "stream_engine/prediction/scores.py",
        "held -= _tested(self._parts.popleft())",
        "break",
        PROGRESSIVE,
    ),
    Bug(
        "a question's own answers predict it",
        "stream_engine/statistics/confidence.py",
        "return sums.w[sums.near] - sums.w[sums.far] - 2 * net",
        "return sums.w[sums.near] - sums.w[sums.far] - net",
        "tests/statistics/test_confidence.py -k 'left or plain'",
    ),
    Bug(
        "stability compares a partition with itself",
        "stream_engine/clustering/stability.py",
        "overlap += jaccard(labels, replicated)",
        "overlap += jaccard(labels, labels)",
        "tests/statistics/test_confidence.py -k stable",
    ),
    Bug(
        "the least evidence comes first",
        "stream_engine/clustering/similarity_of_snapshot.py",
        'ids = np.sort(ids[np.argsort(-_sizes(W)[ids], kind="stable")[:objects]])',
        'ids = np.sort(ids[np.argsort(_sizes(W)[ids], kind="stable")[:objects]])',
        "tests/end_to_end/test_many_objects.py -k evidence",
    ),
    Bug(
        "the rest joins the cluster with the largest sum",
        "stream_engine/clustering/label_matching.py",
        "share = 1.0 / np.bincount(labels[clustered])",
        "share = np.bincount(labels[clustered]) * 1.0",
        "tests/end_to_end/test_many_objects.py -k rest",
    ),
    Bug(
        "the least evidence comes first, of answers",
        "stream_engine/statistics/subset.py",
        'first = np.argsort(-count, kind="stable")[:objects]',
        'first = np.argsort(count, kind="stable")[:objects]',
        "tests/refits/test_subset_refits.py -k evidence",
    ),
    Bug(
        "an anchor need not be chosen",
        "stream_engine/statistics/subset.py",
        "columns = restrict_columns(triplet_columns(snapshot), new_id, new_id)._replace(n_objects=len(ids))",
        (
            "columns = restrict_columns(triplet_columns(snapshot), new_id, np.maximum(new_id, 0))"
            "._replace(n_objects=len(ids))"
        ),
        "tests/refits/test_subset_refits.py -k counts_of_a_part",
    ),
    Bug(
        "a quadruplet needs one chosen object",
        "stream_engine/statistics/subset.py",
        "kept = (rows >= 0).all(axis=1)",
        "kept = (rows >= 0).any(axis=1)",
        "tests/refits/test_subset_refits.py -k counts_of_a_part",
    ),
    Bug(
        "placing forgets what the files said",
        "stream_engine/kernel_learning/out_of_sample.py",
        "b[t] += fixed[i, q] * fixed[i, q] - fixed[j, q] * fixed[j, q] - 2.0 * given[q] * (fixed[i, q] - fixed[j, q])",
        "b[t] += fixed[i, q] * fixed[i, q] - fixed[j, q] * fixed[j, q]",
        "tests/kernel_learning/test_out_of_sample.py -k cost_least",
    ),
    Bug(
        "whoever is joined to a subset is told the wrong way round",
        "stream_engine/kernel_learning/out_of_sample.py",
        "to_lo[at[x]], to_hi[at[x]], to_n_lo[at[x]], to_n_hi[at[x]] = a, b, n_lo[e], n_hi[e]",
        "to_lo[at[x]], to_hi[at[x]], to_n_lo[at[x]], to_n_hi[at[x]] = a, b, n_hi[e], n_lo[e]",
        "tests/kernel_learning/test_out_of_sample.py -k object_by_object",
    ),
    Bug(
        "placing goes by another lambda than learning",
        "stream_engine/refits/kernel_learning.py",
        "        lambda1,\n        params.loss,\n",
        "        10 * lambda1,\n        params.loss,\n",
        "tests/kernel_learning/test_out_of_sample.py -k own_objective",
    ),
    Bug(
        "far pairs push as near ones pull",
        "stream_engine/kernel_learning/pair_lists.py",
        "s[far[t]] -= y[t]",
        "s[far[t]] += y[t]",
        "tests/kernel_learning/test_factored.py -k pairs_say",
    ),
    Bug(
        "a guess of Lanczos is called a proof",
        "stream_engine/kernel_learning/factored.py",
        "while not _positive(matrix, cost * (1.0 + more)):",
        "while False:",
        "tests/kernel_learning/test_factored.py -k proven",
    ),
    Bug(
        "columns of mu are left out of the dual",
        "stream_engine/kernel_learning/factored.py",
        "s, directions = _within_columns(problem, y), []",
        "s, directions = 1.0, []",
        "tests/kernel_learning/test_factored.py -k within_its_columns",
    ),
    Bug(
        "columns of others in another scale",
        "stream_engine/kernel_learning/auxiliary_kernels.py",
        "scale = len(mine.known) / (float(np.trace(own)) * size)",
        "scale = len(mine.known) / float(np.trace(own))",
        "tests/kernel_learning/test_out_of_sample.py -k same_kernel",
    ),
    Bug(
        "a warm start takes rows by place",
        "stream_engine/refits/kernel_learning.py",
        "here, there = common(ids, learned_ids(previous.arrays))",
        "here = there = np.arange(min(len(ids), len(old)))",
        "tests/kernel_learning/test_out_of_sample.py -k warm_start",
    ),
    Bug(
        "what was trained on before the choice moved is a test",
        "stream_engine/boosting/labels.py",
        "parts[left] = np.where(seen[left], BEFORE, OUTSIDE)",
        "parts[left] = OUTSIDE",
        "tests/refits/test_subset_refits.py -k stays_out",
    ),
    Bug(
        "labels of others train",
        "stream_engine/refits/triplet_boost.py",
        "parts = labels.split(sets, params.test, params.stop, seed, trained, inside)",
        "parts = labels.split(sets, params.test, params.stop, seed, trained)",
        "tests/refits/test_subset_refits.py -k labels_of_others",
    ),
    Bug(
        "the chosen keep their old places in exports by name",
        "stream_engine/exports/by_name.py",
        "np.take(array, objects if axis is OBJECTS else subset, number)",
        "np.take(array, objects, number)",
        "tests/kernel_learning/test_out_of_sample.py -k exports_name",
    ),
    Bug(
        "an object that nothing placed predicts",
        "stream_engine/prediction/learned.py",
        "asked = asked[(known[block[asked]] > 0).all(axis=1)]",
        "asked = asked[(block[asked] >= 0).all(axis=1)]",
        "tests/kernel_learning/test_out_of_sample.py -k places_by_g",
    ),
    Bug(
        "k1 of many objects is clustered without its leading axis",
        "stream_engine/clustering/factored_kernel.py",
        "labels = partition.k_means(vectors[:, : k - 1], k, seed, partition.STARTS)",
        "labels = partition.k_means(vectors[:, 1:k], k, seed, partition.STARTS)",
        "tests/end_to_end/test_many_objects.py -k feature_space",
    ),
    Bug(
        "the value in feature space counts the diagonal",
        "stream_engine/clustering/factored_kernel.py",
        "return float((((sums**2).sum(axis=0) - answering) / sizes).sum())",
        "return float((((sums**2).sum(axis=0)) / sizes).sum())",
        "tests/end_to_end/test_many_objects.py -k feature_space",
    ),
    Bug(
        "factors of kernels lose their last column",
        "stream_engine/exports/similarities.py",
        '"indptr": phi.indptr, "shape"',
        '"indptr": np.minimum(phi.indptr, phi.indptr[-2]), "shape"',
        "tests/end_to_end/test_many_objects.py -k factor",
    ),
    Bug(
        "a run takes any share of the partitions",
        "stream_engine/service/share.py",
        "    if not topics(settings.source) or asked == made_with:\n",
        "    if True:\n",
        "tests/service/test_share.py",
    ),
    Bug(
        "what is passed over is not counted as lost",
        "stream_engine/service/repair/move_position.py",
        "        engine.lost[name] = engine.lost.get(name, 0) + lost\n",
        "        pass\n",
        "tests/commands/test_seek.py",
    ),
    Bug(
        "a recount reads on behind the position",
        "stream_engine/service/repair/read_again.py",
        "begin, end = max(record.offset, stretch.begin), min(record.next_offset, stretch.end)",
        "begin, end = max(record.offset, stretch.begin), record.next_offset",
        "tests/commands/test_verify.py",
    ),
    Bug(
        "new shards appear one by one",
        "stream_engine/service/repair/reshard.py",
        '    temporary = out.parent / f".{out.name}.{os.getpid()}"\n',
        "    temporary = out\n",
        "tests/commands/test_reshard.py -k killed",
    ),
    Bug(
        "a letter that was replayed is read again by the next replay",
        "stream_engine/service/letters_replay.py",
        "if kept.at >= replayed.get(kept.letter.reason, 0):",
        "if kept.at >= 0:",
        "tests/crash/test_dead_letters_kept.py -k replay",
    ),
    Bug(
        "segments of dead letters go before the snapshot that counts them",
        "stream_engine/service/letters_kept.py",
        'remembered["removed_before"] = segment + 1\n',
        'remembered["removed_before"] = segment + 1\n            self._disk.remove(self._path(segment))\n',
        "tests/crash/test_dead_letters_kept.py -k limits",
    ),
    Bug(
        "a record is put aside after one death alone",
        "stream_engine/service/suspects.py",
        "return self.deaths >= DEATHS and self.alone >= ALONE",
        "return self.alone >= 1",
        "tests/service/test_quarantine.py -k accuses",
    ),
    Bug(
        "a part of a record moves the position past all of it",
        "stream_engine/service/ingest.py",
        "more=part.next_offset != record.next_offset",
        "more=False",
        "tests/service/test_quarantine.py -k suspicion",
    ),
    Bug(
        "a snapshot does not wait for the guard",
        "stream_engine/service/consume.py",
        '    _join(run)\n    _finish_publishing(run)\n    run.memory.wait("snapshot"',
        '    _finish_publishing(run)\n    run.memory.wait("snapshot"',
        "tests/service/test_stages.py -k slow",
    ),
    Bug(
        "who stops leaves a record half learned",
        "stream_engine/service/consume.py",
        "(within or not run.requests.stop)",
        "not run.requests.stop",
        "tests/service/test_stages.py -k half",
    ),
    Bug(
        "any number of decoded blocks may wait",
        "stream_engine/service/stages.py",
        "                self._room.acquire()\n",
        "",
        "tests/service/test_stages.py -k bounded",
    ),
    Bug(
        "a judgement is torn between what is held out and what trains",
        "stream_engine/statistics/judgement_folds.py",
        "        kept = units[self.unit]\n",
        "        kept = units[self.unit] & (self.rows[:, 1] % 2 == 0)\n",
        "tests/statistics/test_judgement_folds.py",
    ),
    Bug(
        "answers that are held out go on training",
        "stream_engine/statistics/judgement_folds.py",
        "times[mine], len(counts)).astype(counts.dtype))",
        "0 * times[mine], len(counts)).astype(counts.dtype))",
        "tests/statistics/test_judgement_folds.py",
    ),
    Bug(
        "a worker of whom a sample holds but a part is said to be never heard",
        "stream_engine/statistics/judgement_folds.py",
        "    workers = found.complete and len(names)",
        "    workers = len(names)",
        "tests/statistics/test_judgement_folds.py",
    ),
    Bug(
        "what chose lambda is reported",
        "stream_engine/refits/held_out_answers.py",
        "self.found.of(self._part > CHOOSE)",
        "self.found.of(self._part == CHOOSE)",
        "tests/refits/test_held_out_answers.py -k neither_chose",
    ),
    Bug(
        "what is reported sets the grid of beta",
        "stream_engine/refits/beta_choice.py",
        "        scale = _smallest(params, outside) or smallest\n",
        "        scale = smallest\n",
        "tests/refits/test_held_out_answers.py -k neither_chose",
    ),
    *KERNEL_BUGS,
]


def survives(bug: Bug, folder: Path, environment: dict[str, str]) -> str:
    """Why the bug was not caught, or ""."""
    path = folder / bug.file
    text = path.read_text()
    if text.count(bug.good) != 1:
        return f"applies {text.count(bug.good)} times"
    path.write_text(text.replace(bug.good, bug.bad))
    try:
        command = f"{sys.executable} -m pytest -q -x -p no:cacheprovider {bug.tests}"
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True)
        return (
            ""
            if done.returncode == 1
            else f"tests ended with {done.returncode}: {done.stdout.strip().splitlines()[-1:]}"
        )
    finally:
        path.write_text(text)


def main() -> int:
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", ".hypothesis", "demo"))
        shared = Path(os.environ.get("NUMBA_CACHE_DIR") or copy / "stream_engine" / "__pycache__").resolve()
        environment = {**os.environ, "PYTHONPATH": str(copy), "NUMBA_CACHE_DIR": str(shared)}
        subprocess.run([sys.executable, "-m", "stream_engine", "warm-up"], cwd=copy, env=environment, check=True)
        for bug in (b for b in BUGS if len(sys.argv) == 1 or any(part in b.file for part in sys.argv[1:])):
            why = survives(bug, copy, environment)
            wrong += bool(why)
            print(f"{'SURVIVED' if why else 'caught  '}  {bug.what}" + (f"  ({why})" if why else ""), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
