import {
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  isAbstractType,
  isCompositeType,
  isListType,
  isNonNullType,
  Kind,
  SchemaMetaFieldDef,
  type SelectionSetNode,
  TypeMetaFieldDef,
} from 'graphql';
import { fragmentsOf } from '../../execution/document.ts';
import { type JsonSchema, leafSchema, orNull } from './type-schemas.ts';

/** The fields with one response key. */
interface Selected {
  readonly nodes: FieldNode[];
  /** Whether every response has the key. */
  isCertain: boolean;
}

/** Directives that omit a selection, or send it later. */
const OMITTING = new Set(['skip', 'include', 'defer']);

/** Describes the `data` of an operation in JSON Schema 2020-12, by its selection. */
export function schemaOfSelection(
  schema: GraphQLSchema,
  document: DocumentNode,
  type: GraphQLObjectType,
  selections: SelectionSetNode,
): JsonSchema {
  return new SelectionDescriber(schema, fragmentsOf(document)).describeComposite(type, [selections]);
}

class SelectionDescriber {
  readonly #schema: GraphQLSchema;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;

  constructor(schema: GraphQLSchema, fragments: ReadonlyMap<string, FragmentDefinitionNode>) {
    this.#schema = schema;
    this.#fragments = fragments;
  }

  /** Describes a value of a composite type. An abstract type has one form per set of fields. */
  describeComposite(type: GraphQLCompositeType, selections: readonly SelectionSetNode[]): JsonSchema {
    if (!isAbstractType(type)) return this.#describeObject(type, selections);
    const forms = new Map<string, JsonSchema>();
    for (const possible of this.#schema.getPossibleTypes(type)) {
      const form = this.#describeObject(possible, selections);
      forms.set(JSON.stringify(form), form);
    }
    const [only, ...others] = forms.values();
    return only !== undefined && others.length === 0 ? only : { anyOf: [...forms.values()] };
  }

  #describeObject(type: GraphQLObjectType, selections: readonly SelectionSetNode[]): JsonSchema {
    const selected = new Map<string, Selected>();
    for (const each of selections) this.#collect(type, each, selected);
    const properties: Record<string, JsonSchema> = {};
    for (const [key, { nodes }] of selected) properties[key] = this.#describeField(type, nodes);
    const required = [...selected].filter(([, { isCertain }]) => isCertain).map(([key]) => key);
    return {
      type: 'object',
      properties,
      ...(required.length > 0 ? { required } : undefined),
      additionalProperties: false,
    };
  }

  #collect(
    type: GraphQLObjectType,
    { selections }: SelectionSetNode,
    selected: Map<string, Selected>,
    isCertain = true,
  ): void {
    for (const node of selections) {
      const isIncluded = isCertain && !isOmissible(node.directives);
      if (node.kind === Kind.FIELD) {
        const key = node.alias?.value ?? node.name.value;
        const known = selected.get(key);
        if (known === undefined) selected.set(key, { nodes: [node], isCertain: isIncluded });
        else {
          known.nodes.push(node);
          known.isCertain ||= isIncluded;
        }
        continue;
      }
      const fragment = node.kind === Kind.FRAGMENT_SPREAD ? this.#fragments.get(node.name.value) : node;
      if (fragment === undefined || !this.#applies(fragment.typeCondition?.name.value, type)) continue;
      this.#collect(type, fragment.selectionSet, selected, isIncluded);
    }
  }

  #applies(condition: string | undefined, type: GraphQLObjectType): boolean {
    if (condition === undefined || condition === type.name) return true;
    const wanted = this.#schema.getType(condition);
    return isAbstractType(wanted) && this.#schema.isSubType(wanted, type);
  }

  #describeField(parent: GraphQLObjectType, nodes: readonly FieldNode[]): JsonSchema {
    const name = nodes[0]?.name.value ?? '';
    if (name === '__typename') return { const: parent.name };
    const field = META_FIELDS.get(name) ?? parent.getFields()[name];
    if (field === undefined) return {};
    return this.#describeType(
      field.type,
      nodes.flatMap(({ selectionSet }) => selectionSet ?? []),
    );
  }

  #describeType(type: GraphQLOutputType, selections: readonly SelectionSetNode[]): JsonSchema {
    if (!isNonNullType(type)) return orNull(this.#describeNonNull(type, selections));
    return this.#describeNonNull(type.ofType, selections);
  }

  #describeNonNull(type: GraphQLOutputType, selections: readonly SelectionSetNode[]): JsonSchema {
    if (isListType(type)) return { type: 'array', items: this.#describeType(type.ofType, selections) };
    return isCompositeType(type) ? this.describeComposite(type, selections) : leafSchema(type, 'output');
  }
}

const META_FIELDS = new Map([SchemaMetaFieldDef, TypeMetaFieldDef].map((field) => [field.name, field]));

const isOmissible = (directives: readonly DirectiveNode[] | undefined): boolean =>
  directives?.some(({ name }) => OMITTING.has(name.value)) === true;
