import {
  buildSchema,
  type DirectiveNode,
  type DocumentNode,
  type FragmentSpreadNode,
  GraphQLSchema,
  getNullableType,
  type InlineFragmentNode,
  isListType,
  Kind,
  type OperationDefinitionNode,
  parse,
  type SelectionSetNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import type { Choices } from '../engine/choices.ts';
import { DIRECTIVES } from './incremental-schema.ts';

const declared = buildSchema(`${DIRECTIVES} type Query { a: Int }`)
  .getDirectives()
  .filter(({ name }) => name === 'defer' || name === 'stream');

/** Returns a schema with the same types that declares `@defer` and `@stream`. */
export function withIncremental(schema: GraphQLSchema): GraphQLSchema {
  const config = schema.toConfig();
  return new GraphQLSchema({ ...config, directives: [...config.directives, ...declared], assumeValid: true });
}

const directive = (text: string): readonly DirectiveNode[] => {
  const [definition] = parse(`{ a ${text} }`).definitions;
  const [field] = (definition as OperationDefinitionNode).selectionSet.selections;
  return field?.directives ?? [];
};
const DEFER = directive('@defer');

/** Adds `@defer` to some fragments, and `@stream` to some lists. */
export function withDirectives(
  schema: GraphQLSchema,
  document: DocumentNode,
  choices: Choices,
): DocumentNode {
  const types = new TypeInfo(schema);
  const defer = <T extends InlineFragmentNode | FragmentSpreadNode>(node: T): T | undefined =>
    choices.chance(150) ? { ...node, directives: [...(node.directives ?? []), ...DEFER] } : undefined;
  return visit(
    document,
    visitWithTypeInfo(types, {
      InlineFragment: { leave: defer },
      FragmentSpread: { leave: defer },
      SelectionSet: {
        leave(node) {
          const [first, ...others] = node.selections;
          if (first === undefined || others.length === 0 || !choices.chance(90)) return undefined;
          const selectionSet: SelectionSetNode = { kind: Kind.SELECTION_SET, selections: others };
          const part: InlineFragmentNode = { kind: Kind.INLINE_FRAGMENT, directives: DEFER, selectionSet };
          return { ...node, selections: [first, part] };
        },
      },
      Field: {
        enter(node) {
          if (!isListType(getNullableType(types.getType())) || !choices.chance(90)) return undefined;
          const stream = directive(`@stream(initialCount: ${choices.choose(3)})`);
          return { ...node, directives: [...(node.directives ?? []), ...stream] };
        },
      },
    }),
  );
}
