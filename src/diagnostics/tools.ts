/** A tool that agents may call over MCP. */
interface OfferedTool {
  readonly name: string;
  readonly description: string;
}

type Endpoint = { tools(): readonly OfferedTool[] };

let endpoints: WeakRef<Endpoint>[] = [];

/** Registers the tools of an endpoint for the page of inspect. It does not keep the endpoint alive. */
export function registerTools(endpoint: Endpoint): void {
  endpoints = [...endpoints.filter((reference) => reference.deref() !== undefined), new WeakRef(endpoint)];
}

/** Returns the tools of all endpoints; undefined if there is none. */
export function readTools(): readonly OfferedTool[] | undefined {
  const live = endpoints.map((reference) => reference.deref()).filter((endpoint) => endpoint !== undefined);
  return live.length === 0 ? undefined : live.flatMap((endpoint) => endpoint.tools());
}
