import { GraphQLError, type GraphQLObjectType, type GraphQLResolveInfo } from 'graphql';
import { isThenable } from '../../execution/types.ts';
import type { Compiler, Complete, FieldPlan } from '../run/plan.ts';
import { subscribe } from '../run/promises.ts';
import { inspect } from './leaf-output.ts';

/** `isTypeOf` as the engine calls it: `info` is missing if the function cannot read it. */
interface WithTypeCheck {
  isTypeOf?: ((value: unknown, context: unknown, info: GraphQLResolveInfo | undefined) => unknown) | null;
}

/** Completes a value of an object type, after its `isTypeOf` if it has one. */
export function completeObject(compiler: Compiler, plan: FieldPlan, type: GraphQLObjectType): Complete {
  compiler.snapshot.addOutputType(type);
  const run = compiler.compileSelectionSet(type, plan.nodes);
  if (!type.isTypeOf) {
    return (ex, value, path) => {
      run(ex, value, path);
      return undefined;
    };
  }
  return (ex, value, path, info) => {
    const isOfType = (type as WithTypeCheck).isTypeOf?.(value, ex.inputs.contextValue, info);
    if (isThenable(isOfType)) {
      return (pending) => {
        pending.promiseDepth++;
        const complete: Complete = (later, resolved, at) => {
          if (!resolved) throw wrongTypeError(type, value, plan);
          run(later, value, at);
          return undefined;
        };
        subscribe(pending, isOfType, complete, info, value);
      };
    }
    if (!isOfType) throw wrongTypeError(type, value, plan);
    run(ex, value, path);
    return undefined;
  };
}

function wrongTypeError(type: GraphQLObjectType, value: unknown, plan: FieldPlan): GraphQLError {
  return new GraphQLError(`Expected value of type "${type.name}" but got: ${inspect(value)}.`, {
    nodes: plan.nodes,
  });
}
