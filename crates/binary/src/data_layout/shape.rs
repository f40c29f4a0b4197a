//! The inside of variables: members of structures, elements of arrays.

/// How deep structures are looked into.
const DEEPEST: usize = 8;

/// Names a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShapeId(usize);

/// A part of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// What is written behind the variable's name, such as `.stat.pages` or `[3]`; nothing for all of it.
    pub path: String,
    /// Bytes from the variable's start.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// A type, as far as its layout goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shape {
    /// Has no parts that are known.
    Plain {
        size: u64,
    },
    /// A structure, class or union.
    Record {
        size: u64,
        members: Vec<Member>,
    },
    Array {
        element: ShapeId,
        count: u64,
    },
}

/// A member of a structure; one without a name is part of it (a base class, an anonymous union).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub name: String,
    pub offset: u64,
    pub shape: ShapeId,
}

/// All types that variables have.
#[derive(Debug, Default)]
pub(super) struct Shapes(Vec<Shape>);

impl Shapes {
    pub(super) fn add(&mut self, shape: Shape) -> ShapeId {
        self.0.push(shape);
        ShapeId(self.0.len() - 1)
    }

    pub(super) fn put(&mut self, place: ShapeId, shape: Shape) {
        if let Some(known) = self.0.get_mut(place.0) {
            *known = shape;
        }
    }

    /// Bytes; 0 where that is not known.
    pub(super) fn size(&self, shape: ShapeId) -> u64 {
        self.size_within(shape, DEEPEST)
    }

    fn size_within(&self, shape: ShapeId, depth: usize) -> u64 {
        match self.0.get(shape.0) {
            Some(Shape::Plain { size } | Shape::Record { size, .. }) => *size,
            Some(Shape::Array { element, count }) => match depth.checked_sub(1) {
                Some(depth) => self.size_within(*element, depth).saturating_mul(*count),
                None => 0,
            },
            None => 0,
        }
    }

    /// The innermost part that holds a byte, and whether the byte is padding in it.
    pub(super) fn piece(&self, shape: ShapeId, offset: u64) -> Option<(Piece, bool)> {
        let mut is_padding = false;
        let mut piece = Piece {
            path: String::new(),
            offset: 0,
            size: self.size(shape),
        };
        let mut shape = shape;
        for _ in 0..DEEPEST {
            let within = offset.checked_sub(piece.offset)?;
            match self.0.get(shape.0)? {
                Shape::Plain { .. } => break,
                Shape::Record { members, .. } => {
                    let holds = |member: &&Member| {
                        let end = member.offset.saturating_add(self.size(member.shape));
                        member.offset <= within && within < end
                    };
                    let Some(member) = self.widest(members.iter().filter(holds)) else {
                        is_padding = !members.is_empty();
                        break;
                    };
                    if !member.name.is_empty() {
                        piece.path.push('.');
                        piece.path.push_str(&member.name);
                    }
                    piece.offset = piece.offset.saturating_add(member.offset);
                    shape = member.shape;
                }
                Shape::Array { element, count } => {
                    let size = self.size(*element);
                    let Some(number) = within.checked_div(size).filter(|number| number < count) else {
                        break;
                    };
                    // Text and other bytes are one thing.
                    if size == 1 {
                        break;
                    }
                    piece.path.push_str(&format!("[{number}]"));
                    piece.offset = piece.offset.saturating_add(number * size);
                    shape = *element;
                }
            }
            piece.size = self.size(shape);
        }
        Some((piece, is_padding))
    }

    /// Of the members that hold a byte the widest: an empty class may lie within its neighbour, and of a union the whole is
    /// wanted.
    fn widest<'a>(&self, members: impl Iterator<Item = &'a Member>) -> Option<&'a Member> {
        let mut widest: Option<(&Member, u64)> = None;
        for member in members {
            let size = self.size(member.shape);
            if widest.is_none_or(|(_, known)| size > known) {
                widest = Some((member, size));
            }
        }
        widest.map(|(member, _)| member)
    }

    /// The array that the first index in a path leads into: where it starts, its path and its size.
    pub(super) fn array(&self, shape: ShapeId, offset: u64) -> Option<Piece> {
        let mut piece = Piece {
            path: String::new(),
            offset: 0,
            size: self.size(shape),
        };
        let mut shape = shape;
        for _ in 0..DEEPEST {
            match self.0.get(shape.0)? {
                Shape::Array { .. } => return Some(piece),
                Shape::Plain { .. } => return None,
                Shape::Record { members, .. } => {
                    let within = offset.checked_sub(piece.offset)?;
                    let holds = |member: &&Member| {
                        let end = member.offset.saturating_add(self.size(member.shape));
                        member.offset <= within && within < end
                    };
                    let member = self.widest(members.iter().filter(holds))?;
                    if !member.name.is_empty() {
                        piece.path.push('.');
                        piece.path.push_str(&member.name);
                    }
                    piece.offset = piece.offset.saturating_add(member.offset);
                    piece.size = self.size(member.shape);
                    shape = member.shape;
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(shapes: &Shapes, shape: ShapeId, offset: u64) -> (String, u64, u64) {
        let (piece, _) = shapes.piece(shape, offset).expect("a piece");
        (piece.path, piece.offset, piece.size)
    }

    #[test]
    fn bytes_belong_to_the_innermost_member_that_holds_them() {
        let mut shapes = Shapes::default();
        let long = shapes.add(Shape::Plain { size: 8 });
        let byte = shapes.add(Shape::Plain { size: 1 });
        let text = shapes.add(Shape::Array {
            element: byte,
            count: 10,
        });
        let member = |name: &str, offset, shape| Member {
            name: name.to_owned(),
            offset,
            shape,
        };
        let base = shapes.add(Shape::Record {
            size: 8,
            members: vec![member("count", 0, long)],
        });
        let slot = shapes.add(Shape::Record {
            size: 32,
            members: vec![member("", 0, base), member("name", 8, text), member("used", 24, byte)],
        });
        let slots = shapes.add(Shape::Array {
            element: slot,
            count: 3,
        });
        assert_eq!(shapes.size(slots), 96);
        assert_eq!(piece(&shapes, slots, 0), ("[0].count".into(), 0, 8));
        assert_eq!(piece(&shapes, slots, 32 + 9), ("[1].name".into(), 40, 10));
        assert_eq!(piece(&shapes, slots, 64 + 24), ("[2].used".into(), 88, 1));
        // Padding is the element's.
        assert_eq!(piece(&shapes, slots, 31), ("[0]".into(), 0, 32));
        assert!(shapes.piece(slots, 31).is_some_and(|(_, is_padding)| is_padding));
        assert!(shapes.piece(slots, 32).is_some_and(|(_, is_padding)| !is_padding));
        assert_eq!(piece(&shapes, slots, 96), (String::new(), 0, 96));
    }

    #[test]
    fn an_empty_class_does_not_hide_the_member_that_it_lies_in() {
        let mut shapes = Shapes::default();
        let long = shapes.add(Shape::Plain { size: 8 });
        let empty = shapes.add(Shape::Plain { size: 1 });
        let counts = shapes.add(Shape::Array {
            element: long,
            count: 4,
        });
        let member = |name: &str, shape| Member {
            name: name.to_owned(),
            offset: 0,
            shape,
        };
        let members = vec![member("policy", empty), member("counts", counts)];
        let counter = shapes.add(Shape::Record { size: 32, members });
        assert_eq!(piece(&shapes, counter, 0), (".counts[0]".into(), 0, 8));
        let array = shapes.array(counter, 24).expect("an array");
        assert_eq!((array.path.as_str(), array.offset, array.size), (".counts", 0, 32));
        assert_eq!(shapes.array(long, 0), None);
    }

    #[test]
    fn a_type_that_holds_itself_ends_somewhere() {
        let mut shapes = Shapes::default();
        let circle = shapes.add(Shape::Plain { size: 8 });
        shapes.put(
            circle,
            Shape::Array {
                element: circle,
                count: 2,
            },
        );
        assert_eq!(shapes.size(circle), 0);
        assert!(shapes.piece(circle, 5).is_some());
    }
}
