/** Requests with invalid input: title, query, variables, and the errors of both versions of graphql. */
type Refused = readonly [
  title: string,
  query: string,
  variables: Record<string, unknown>,
  of16: string[],
  of17: string[],
];

export const REFUSED: readonly Refused[] = [
  [
    'null for a non-null member of an object',
    'query ($v: Test) { object(input: $v) }',
    { v: { a: 'foo', b: 'bar', c: null } },
    [
      'Variable "$v" got invalid value null at "v.c"; Expected non-nullable type "String!" not to be null.  1:8',
    ],
    ['Variable "$v" has invalid value at .c: Expected value of non-null type "String!" not to be null.  1:8'],
  ],
  [
    'a string for an object',
    'query ($v: Test) { object(input: $v) }',
    { v: 'foo bar' },
    ['Variable "$v" got invalid value "foo bar"; Expected type "Test" to be an object.  1:8'],
    [
      'Variable "$v" has invalid value: Expected value of type "Test" to be an object, found: "foo bar".  1:8',
    ],
  ],
  [
    'an object without a required member',
    'query ($v: Test) { object(input: $v) }',
    { v: { a: 'foo', b: 'bar' } },
    [
      'Variable "$v" got invalid value { a: "foo", b: "bar" }; Field "c" of required type "String!" was not provided.  1:8',
    ],
    [
      'Variable "$v" has invalid value: Expected value of type "Test" to include required field "c", found: { a: "foo", b: "bar" }.  1:8',
    ],
  ],
  [
    'an object with several errors in nested objects',
    'query ($v: Nested) { nested(input: $v) }',
    { v: { na: { a: 'foo' } } },
    [
      'Variable "$v" got invalid value { a: "foo" } at "v.na"; Field "c" of required type "String!" was not provided.  1:8',
      'Variable "$v" got invalid value { na: { a: "foo" } }; Field "nb" of required type "String!" was not provided.  1:8',
    ],
    [
      'Variable "$v" has invalid value at .na: Expected value of type "Test" to include required field "c", found: { a: "foo" }.  1:8',
      'Variable "$v" has invalid value: Expected value of type "Nested" to include required field "nb", found: { na: { a: "foo" } }.  1:8',
    ],
  ],
  [
    'an object with unknown members',
    'query ($v: Test) { object(input: $v) }',
    { v: { c: 'baz', extra: 'dog' } },
    [
      'Variable "$v" got invalid value { c: "baz", extra: "dog" }; Field "extra" is not defined by type "Test".  1:8',
    ],
    [
      'Variable "$v" has invalid value: Expected value of type "Test" not to include unknown field "extra", found: { c: "baz", extra: "dog" }.  1:8',
    ],
  ],
  [
    'a value that its scalar refuses',
    'query ($v: Test) { object(input: $v) }',
    { v: { c: 'c', e: 'SerializedValue' } },
    [
      'Variable "$v" got invalid value "SerializedValue" at "v.e"; Expected type "Faulty". FaultyScalarErrorMessage  1:8',
    ],
    [
      'Variable "$v" has invalid value at .e: Expected value of type "Faulty", but encountered error "FaultyScalarErrorMessage"; found: "SerializedValue".  1:8',
    ],
  ],
  [
    'a literal that its scalar refuses',
    '{ object(input: { c: "foo", e: "bar" }) }',
    {},
    ['Argument "input" has invalid value {c: "foo", e: "bar"}. object 1:17'],
    [
      'Argument "Query.object(input:)" has invalid value at .e: Expected value of type "Faulty", but encountered error "FaultyScalarErrorMessage"; found: "bar". object 1:32',
    ],
  ],
  [
    'a list literal for an object',
    '{ object(input: ["foo", "bar", "baz"]) }',
    {},
    ['Argument "input" has invalid value ["foo", "bar", "baz"]. object 1:17'],
    [
      'Argument "Query.object(input:)" has invalid value: Expected value of type "Test" to be an object, found: ["foo", "bar", "baz"]. object 1:17',
    ],
  ],
  [
    'a missing non-null variable',
    'query ($v: String!) { must(input: $v) }',
    {},
    ['Variable "$v" of required type "String!" was not provided.  1:8'],
    ['Variable "$v" has invalid value: Expected a value of non-null type "String!" to be provided.  1:8'],
  ],
  [
    'null for a non-null variable',
    'query ($v: String!) { must(input: $v) }',
    { v: null },
    ['Variable "$v" of non-null type "String!" must not be null.  1:8'],
    ['Variable "$v" has invalid value: Expected value of non-null type "String!" not to be null.  1:8'],
  ],
  [
    'a missing non-null argument',
    '{ must }',
    {},
    ['Argument "input" of required type "String!" was not provided. must 1:3'],
    ['Argument "Query.must(input:)" of required type "String!" was not provided. must 1:3'],
  ],
  [
    'null for a non-null argument',
    '{ must(input: null) }',
    {},
    ['Argument "input" of non-null type "String!" must not be null. must 1:15'],
    [
      'Argument "Query.must(input:)" has invalid value: Expected value of non-null type "String!" not to be null. must 1:15',
    ],
  ],
  [
    'a non-null argument whose variable is missing',
    'query ($v: String) { must(input: $v) }',
    {},
    [
      'Argument "input" of required type "String!" was provided the variable "$v" which was not provided a runtime value. must 1:34',
    ],
    [
      'Argument "Query.must(input:)" has invalid value: Expected variable "$v" provided to type "String!" to provide a runtime value. must 1:34',
    ],
  ],
  [
    'a non-null argument whose variable is null',
    'query ($v: String) { must(input: $v) }',
    { v: null },
    ['Argument "input" of non-null type "String!" must not be null. must 1:34'],
    [
      'Argument "Query.must(input:)" has invalid value: Expected variable "$v" provided to non-null type "String!" not to be null. must 1:34',
    ],
  ],
  [
    'null in place of the default of a non-null argument',
    'query ($v: String = "x") { mustDefault(input: $v) }',
    { v: null },
    ['Argument "input" of non-null type "String!" must not be null. mustDefault 1:47'],
    [
      'Argument "Query.mustDefault(input:)" has invalid value: Expected variable "$v" provided to non-null type "String!" not to be null. mustDefault 1:47',
    ],
  ],
  [
    'a list for a string',
    'query ($v: String!) { must(input: $v) }',
    { v: [1, 2, 3] },
    ['Variable "$v" got invalid value [1, 2, 3]; String cannot represent a non string value: [1, 2, 3]  1:8'],
    ['Variable "$v" has invalid value: String cannot represent a non string value: [1, 2, 3]  1:8'],
  ],
  [
    'a literal of another type',
    '{ default(input: WRONG_TYPE) }',
    {},
    ['Argument "input" has invalid value WRONG_TYPE. default 1:18'],
    [
      'Argument "Query.default(input:)" has invalid value: String cannot represent a non string value: WRONG_TYPE default 1:18',
    ],
  ],
  [
    'null for a non-null list',
    'query ($v: [String]!) { mustList(input: $v) }',
    { v: null },
    ['Variable "$v" of non-null type "[String]!" must not be null.  1:8'],
    ['Variable "$v" has invalid value: Expected value of non-null type "[String]!" not to be null.  1:8'],
  ],
  [
    'null in a list of non-null items',
    'query ($v: [String!]) { listOfMust(input: $v) }',
    { v: ['A', null, 'B'] },
    [
      'Variable "$v" got invalid value null at "v[1]"; Expected non-nullable type "String!" not to be null.  1:8',
    ],
    [
      'Variable "$v" has invalid value at [1]: Expected value of non-null type "String!" not to be null.  1:8',
    ],
  ],
  [
    'null in a non-null list of non-null items',
    'query ($v: [String!]!) { allMust(input: $v) }',
    { v: ['A', null] },
    [
      'Variable "$v" got invalid value null at "v[1]"; Expected non-nullable type "String!" not to be null.  1:8',
    ],
    [
      'Variable "$v" has invalid value at [1]: Expected value of non-null type "String!" not to be null.  1:8',
    ],
  ],
  [
    'a variable of an output type',
    'query ($v: Query!) { text(input: $v) }',
    { v: { a: 1 } },
    ['Variable "$v" expected value of type "Query!" which cannot be used as an input type.  1:12'],
    ['Variable "$v" expected value of type "Query!" which cannot be used as an input type.  1:12'],
  ],
  [
    'a variable of an unknown type',
    'query ($v: Unknown!) { text(input: $v) }',
    { v: 'WhoKnows' },
    ['Variable "$v" expected value of type "Unknown!" which cannot be used as an input type.  1:12'],
    ['Variable "$v" expected value of type "Unknown!" which cannot be used as an input type.  1:12'],
  ],
  [
    'a @oneOf object without a member',
    'query ($v: One!) { one(input: $v) }',
    { v: {} },
    ['Variable "$v" got invalid value {}; Exactly one key must be specified for OneOf type "One".  1:8'],
    [
      'Variable "$v" has invalid value: Within OneOf Input Object type "One", exactly one field must be specified, and the value for that field must be non-null.  1:8',
    ],
  ],
  [
    'a @oneOf object with two members',
    'query ($v: One!) { one(input: $v) }',
    { v: { a: 'abc', b: 123 } },
    [
      'Variable "$v" got invalid value { a: "abc", b: 123 }; Exactly one key must be specified for OneOf type "One".  1:8',
    ],
    [
      'Variable "$v" has invalid value: Within OneOf Input Object type "One", exactly one field must be specified, and the value for that field must be non-null.  1:8',
    ],
  ],
  [
    'a @oneOf object with one member and null for another',
    'query ($v: One!) { one(input: $v) }',
    { v: { a: 'abc', b: null } },
    [
      'Variable "$v" got invalid value { a: "abc", b: null }; Exactly one key must be specified for OneOf type "One".  1:8',
    ],
    [
      'Variable "$v" has invalid value: Within OneOf Input Object type "One", exactly one field must be specified, and the value for that field must be non-null.  1:8',
    ],
  ],
  [
    'a @oneOf object whose member is null',
    'query ($v: One!) { one(input: $v) }',
    { v: { a: null } },
    ['Variable "$v" got invalid value null at "v.a"; Field "a" must be non-null.  1:8'],
    [
      'Variable "$v" has invalid value at .a: Within OneOf Input Object type "One", exactly one field must be specified, and the value for that field must be non-null.  1:8',
    ],
  ],
  [
    'a @oneOf literal with two members',
    '{ one(input: { a: "abc", b: 123 }) }',
    {},
    ['Argument "input" has invalid value {a: "abc", b: 123}. one 1:14'],
    [
      'Argument "Query.one(input:)" has invalid value: Within OneOf Input Object type "One", exactly one field must be specified, and the value for that field must be non-null. one 1:14',
    ],
  ],
  [
    'a @oneOf literal whose variable is null',
    'query ($a: String) { one(input: { a: $a }) }',
    { a: null },
    ['Argument "input" has invalid value {a: $a}. one 1:33'],
    [
      'Argument "Query.one(input:)" has invalid value: Expected variable "$a" provided to field "a" for OneOf Input Object type "One" not to be null. one 1:33',
    ],
  ],
  [
    'a @oneOf literal whose variable is missing',
    'query ($a: String) { one(input: { a: $a }) }',
    {},
    ['Argument "input" has invalid value {a: $a}. one 1:33'],
    [
      'Argument "Query.one(input:)" has invalid value: Expected variable "$a" provided to field "a" for OneOf Input Object type "One" to provide a runtime value. one 1:33',
    ],
  ],
];
