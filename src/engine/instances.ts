import { GraphQLError, type GraphQLObjectType } from 'graphql';
import { inspect } from './inspect.ts';
import { compileObject } from './objects.ts';
import { type Complete, type FieldPlan, isThenable } from './plan.ts';
import type { Program } from './program.ts';
import { subscribe } from './settling.ts';

/** Completes a value of an object type: `isTypeOf` first, where there is one. */
export function completeObject(program: Program, plan: FieldPlan, type: GraphQLObjectType): Complete {
  const run = compileObject(program, type, plan.nodes);
  const { isTypeOf } = type;
  if (!isTypeOf) {
    return (ex, value, path) => {
      run(ex, value, path);
      return undefined;
    };
  }
  return (ex, value, path, info) => {
    const verdict: unknown = type.isTypeOf?.(value, ex.inputs.contextValue, info as never);
    if (isThenable(verdict)) {
      return (slot) => {
        slot.layers++;
        subscribe(
          slot,
          verdict,
          (later, resolved, at) => {
            if (!resolved) throw notOfType(type, value, plan);
            run(later, value, at);
            return undefined;
          },
          info,
        );
      };
    }
    if (!verdict) throw notOfType(type, value, plan);
    run(ex, value, path);
    return undefined;
  };
}

function notOfType(type: GraphQLObjectType, value: unknown, plan: FieldPlan): GraphQLError {
  return new GraphQLError(`Expected value of type "${type.name}" but got: ${inspect(value)}.`, {
    nodes: plan.nodes,
  });
}
