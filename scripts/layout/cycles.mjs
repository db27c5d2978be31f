/**
 * Finds import cycles. In every folder, the files and sub-folders must form an acyclic graph; then no files anywhere form a
 * cycle, and sub-folders have an order.
 */
export function findCycles(imports) {
  const graphs = new Map();
  for (const [file, target] of imports) {
    const [folder, from, to] = liftToSiblings(file, target);
    const graph = graphs.get(folder) ?? new Map();
    graph.set(from, (graph.get(from) ?? new Map()).set(to, `${file} imports ${target}`));
    graphs.set(folder, graph);
  }
  // The order of the folders at the top is checked by their ranks.
  for (const ranked of ['', 'src']) graphs.delete(ranked);
  return [...graphs].flatMap(([folder, graph]) =>
    componentsOf(graph).map((members) => ({ folder, members, imports: importsOfCycle(graph, members) })),
  );
}

/** The deepest common folder of two files, and the entries of it that lead to each. */
function liftToSiblings(file, target) {
  const from = file.split('/');
  const to = target.split('/');
  let depth = 0;
  while (from[depth] === to[depth]) depth++;
  return [from.slice(0, depth).join('/'), from[depth], to[depth]];
}

/** The strongly connected components with more than one member. */
function componentsOf(graph) {
  const reachable = new Map([...graph.keys()].map((node) => [node, reachableFrom(graph, node)]));
  const assigned = new Set();
  const components = [];
  for (const [node, targets] of reachable) {
    if (assigned.has(node) || !targets.has(node)) continue;
    const members = [...targets].filter((other) => reachable.get(other)?.has(node)).sort();
    for (const member of members) assigned.add(member);
    components.push(members);
  }
  return components;
}

function reachableFrom(graph, start) {
  const reached = new Set();
  const queue = [start];
  for (const node of queue) {
    for (const target of graph.get(node)?.keys() ?? []) {
      if (!reached.has(target)) queue.push(target);
      reached.add(target);
    }
  }
  return reached;
}

/** The imports along a shortest cycle of a component. */
function importsOfCycle(graph, members) {
  const cycles = members.map((member) => cycleThrough(graph, member));
  const shortest = cycles.reduce((best, cycle) => (cycle.length < best.length ? cycle : best));
  return shortest.map((from, i) => graph.get(from).get(shortest[(i + 1) % shortest.length]));
}

function cycleThrough(graph, start) {
  const queue = [[start]];
  const reached = new Set();
  for (const path of queue) {
    for (const target of graph.get(path.at(-1))?.keys() ?? []) {
      if (target === start) return path;
      if (!reached.has(target)) queue.push([...path, target]);
      reached.add(target);
    }
  }
  throw new Error(`no cycle leads through ${start}`);
}
